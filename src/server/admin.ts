// The operators' doors, behind an operator's key or the console's session.

import type { CallFunction } from '#core/call_function.ts';
import { createEndingStore, DeadLetterRoutes } from '#core/dead_letters.ts';
import { operatorOf } from '#core/operator.ts';
import type { Route } from '#core/router.ts';
import { type WebhookAdminPorts, WebhookAdminRoutes } from '#core/webhook/admin.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import { type ConsolePorts, consoleRoutes } from '../console/routes.ts';
import type { OperatorAuth } from './operator_auth.ts';

export interface AdminPorts extends ConsolePorts, Pick<WebhookAdminPorts, 'secrets'> {
  /** Calls functions of schema webhook of DB2. */
  readonly webhook: CallFunction;
}

/** Every route below /admin is made here, and none leaves without its guard. */
export function adminRoutes(auth: OperatorAuth, ports: AdminPorts): Route[] {
  // The guard has asked already.
  const authorize = operatorOf;
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
      ...webhooks.routes('/admin/webhooks'),
      ...consoleRoutes(ports),
    ]),
  ];
}
