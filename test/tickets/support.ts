// Tickets in the ledger, and what their codes say.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import decodeQr from 'qr/decode.js';
import { TicketTokens } from '#core/tickets/token.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';

export const TICKET_SECRET = 'the ticket secret of the tests, long enough';
export const tokens = new TicketTokens([TICKET_SECRET], nodeHmac);

export interface WrittenTicket {
  readonly claimId: string;
  readonly resourceId: string;
  readonly token: string;
}

/** As the bridge writes it. */
export async function writeTicket(db2: pg.Client, pool: string): Promise<WrittenTicket> {
  const claimId = randomUUID();
  const resourceId = randomUUID();
  await db2.query('select public.finalize_transaction($1)', [
    { claim_id: claimId, resource_id: resourceId, pool_id: pool, user_id: 'ann', state: 'queued' },
  ]);
  return { claimId, resourceId, token: await tokens.tokenOf(claimId) };
}

/** Takes it back, as a refund does. */
export async function voidTicket(db2: pg.Client, { claimId }: WrittenTicket): Promise<void> {
  await db2.query(
    `insert into public.voided_tickets (claim_id, resource_id, pool_id, user_id, confirmed_at, cause)
     select claim_id, resource_id, pool_id, user_id, confirmed_at, 'refund'
     from public.confirmed_tickets where claim_id = $1`,
    [claimId],
  );
  await db2.query('delete from public.confirmed_tickets where claim_id = $1', [claimId]);
}

const SCALE = 4;

/** What a scanner reads from the page: the squares of the SVG as a picture, read by a decoder that has not made them. */
export function codeIn(html: string): string {
  const size = Number(/<svg [^>]*viewBox="0 0 (\d+) \d+"/.exec(html)?.[1]);
  assert(size > 0, 'the page has no code');
  const width = size * SCALE;
  const data = new Uint8Array(width * width * 4).fill(255);
  for (const [, x, y] of html.matchAll(/M(\d+),(\d+)h1v1h-1z/g))
    for (let row = 0; row < SCALE; row++)
      for (let column = 0; column < SCALE; column++) {
        const at = ((Number(y) * SCALE + row) * width + Number(x) * SCALE + column) * 4;
        data.fill(0, at, at + 3);
      }
  return decodeQr({ width, height: width, data });
}
