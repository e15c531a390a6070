// The operator's doors, behind the admin key or the console's session.

import type { CallFunction } from '#core/call_function.ts';
import { createEndingStore, DeadLetterRoutes } from '#core/dead_letters.ts';
import { createInboxOperatorStore, inboxRoutes } from '#core/inbox/operators.ts';
import { UNNAMED_OPERATOR } from '#core/operator.ts';
import type { Route } from '#core/router.ts';
import { type WebhookAdminPorts, WebhookAdminRoutes } from '#core/webhook/admin.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import { createUnnamedPaymentStore, unnamedPaymentRoutes } from '#core/webhook/unnamed_payments.ts';
import { type ConsolePorts, consoleRoutes } from '../console/routes.ts';
import type { OperatorAuth } from './operator_auth.ts';

export interface AdminPorts extends ConsolePorts, Pick<WebhookAdminPorts, 'secrets'> {
  /** Calls functions of schema webhook of DB2. */
  readonly webhook: CallFunction;
}

/** Every route below /admin is made here, and none leaves without its guard. */
export function adminRoutes(auth: OperatorAuth, ports: AdminPorts): Route[] {
  // The guard has asked already.
  const authorize = () => UNNAMED_OPERATOR;
  const deadLetters = new DeadLetterRoutes({
    ...createEndingStore(ports.db1, ports.db2, ports.log),
    authorize,
  });
  const webhooks = new WebhookAdminRoutes({
    store: createOperatorStore(ports.webhook),
    secrets: ports.secrets,
    authorize,
  });
  return [
    ...auth.routes(),
    ...auth.guard([
      ...deadLetters.routes('/admin/dlq'),
      ...inboxRoutes('/admin/webhooks/inbox', createInboxOperatorStore(ports.db1), authorize),
      ...webhooks.routes('/admin/webhooks'),
      ...unnamedPaymentRoutes('/admin/webhooks', createUnnamedPaymentStore(ports.webhook), authorize),
      ...consoleRoutes(ports),
    ]),
  ];
}
