// The operator's doors, behind the admin key.

import { type AuthPorts, identify } from '#core/auth.ts';
import type { CallFunction } from '#core/bridge/databases.ts';
import { createDlqStore, DlqDoor } from '#core/dlq.ts';
import type { Route } from '#core/door.ts';
import { DoorError } from '#core/errors.ts';

/** How the audit log names an operator who gives no name. */
const UNNAMED_OPERATOR = 'operator';

export function adminRoutes(tokens: AuthPorts, call: CallFunction): Route[] {
  const door = new DlqDoor({
    ...createDlqStore(call),
    async authorize(request) {
      const caller = await identify(tokens, request.headers.authorization);
      if (caller.role !== 'operator') throw new DoorError('auth_required');
      return UNNAMED_OPERATOR;
    },
  });
  return door.routes('/admin/dlq');
}
