// Whether tickets can have links. The doctor's environment stands for that of the servers.

import { MAKE_TICKET_SECRET, readTicketSecrets, TICKET_SECRET } from '../tickets/secrets.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

export function judgeTicketSecret(env: NodeJS.ProcessEnv): Finding {
  const check = 'ticket links';
  const todo = `give all servers the same; make one with: ${MAKE_TICKET_SECRET}`;
  try {
    const secrets = readTicketSecrets(env[TICKET_SECRET]);
    if (secrets === undefined)
      return warn(
        check,
        `${TICKET_SECRET} is not set here: tickets have no page and cannot be checked`,
        todo,
      );
    const others = secrets.length - 1;
    return ok(
      check,
      others === 0 ? `${TICKET_SECRET} is set` : `${TICKET_SECRET} is set, with ${others} older`,
    );
  } catch (error) {
    return fail(check, (error as Error).message, todo);
  }
}
