// The secrets that sign the links of tickets.

import { MIN_TICKET_SECRET_CHARS } from '#core/tickets/token.ts';
import { StackError } from '../failure.ts';

export const TICKET_SECRET = 'SLUICE_TICKET_SECRET';
export const MAKE_TICKET_SECRET = 'openssl rand -base64 32';

export const TICKET_VARIABLES: Readonly<Record<string, string>> = {
  [TICKET_SECRET]:
    'signs the links of tickets; several with commas: the first signs, all are accepted; optional: without it tickets have no links',
};

/** Undefined where none is set. Throws for one that can be guessed. */
export function readTicketSecrets(text: string | undefined): readonly string[] | undefined {
  if (!text) return undefined;
  const secrets = text.split(',').map((secret) => secret.trim());
  if (secrets.some(({ length }) => length < MIN_TICKET_SECRET_CHARS))
    throw new StackError(
      `${TICKET_SECRET} has less than ${MIN_TICKET_SECRET_CHARS} characters, or nothing between two commas`,
      `make one with: ${MAKE_TICKET_SECRET}`,
    );
  return secrets;
}
