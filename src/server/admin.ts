// The operator's doors, behind the admin key or the console's session.

import { createDlqStore, DlqDoor } from '#core/dlq.ts';
import type { Route } from '#core/door.ts';
import { type ConsolePorts, consoleRoutes } from '../console/routes.ts';
import type { OperatorAuth } from './operator_auth.ts';

/** How the audit log names an operator who gives no name. */
const UNNAMED_OPERATOR = 'operator';

/** Every route below /admin is made here, and none leaves without its guard. */
export function adminRoutes(auth: OperatorAuth, ports: ConsolePorts): Route[] {
  const deadLetters = new DlqDoor({ ...createDlqStore(ports.db1), authorize: () => UNNAMED_OPERATOR });
  return [...auth.routes(), ...auth.guard([...deadLetters.routes('/admin/dlq'), ...consoleRoutes(ports)])];
}
