// The operator's doors, behind the admin key.

import { type AuthPorts, identify } from '#core/auth.ts';
import type { CallFunction } from '#core/bridge/databases.ts';
import { createDlqStore, DlqDoor } from '#core/dlq.ts';
import type { Route } from '#core/door.ts';
import { DoorError } from '#core/errors.ts';
import type { Authorize } from '#core/operator.ts';
import { WebhookAdminDoor } from '#core/webhook/admin.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';

/** How the audit log names an operator who gives no name. */
const UNNAMED_OPERATOR = 'operator';

/** `intake` calls functions of schema public of DB1, `webhook` those of schema webhook of DB2. */
export function adminRoutes(tokens: AuthPorts, intake: CallFunction, webhook: CallFunction): Route[] {
  const authorize: Authorize = async (request) => {
    const caller = await identify(tokens, request.headers.authorization);
    if (caller.role !== 'operator') throw new DoorError('auth_required');
    return UNNAMED_OPERATOR;
  };
  return [
    ...new DlqDoor({ ...createDlqStore(intake), authorize }).routes('/admin/dlq'),
    ...new WebhookAdminDoor({ store: createOperatorStore(webhook), authorize }).routes('/admin/webhooks'),
  ];
}
