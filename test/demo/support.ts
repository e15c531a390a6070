import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Claim } from '#client/index.ts';
import { AdminClient } from '../../src/admin/client.ts';
import type { Database } from '../../src/db/database.ts';
import type { Trial } from '../../src/demo/judge.ts';
import { newTally } from '../../src/demo/tally.ts';

export const claimOf = (number: number): Claim => ({
  claim_id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
  resource_id: `slot ${number}`,
  pool_id: 'p',
  user_id: `user ${number}`,
  request_id: null,
  status: 'queued',
  claimed_at: '2026-02-24T10:00:00Z',
  hold_until: null,
});

export const ticketOf = ({ resource_id, claim_id, user_id }: Claim) => ({
  slot_id: resource_id,
  claim_id,
  user_id,
});

/** A ledger that has these rows, whatever it is asked; each list is one answer, the last one stays. */
export function ledgerWith(...answers: (unknown[] | Error)[]): Database {
  return {
    async call<Row>() {
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer instanceof Error) throw answer;
      return (answer ?? []) as Row[];
    },
    transact: () => Promise.reject(new Error('not asked')),
    end: async () => undefined,
  };
}

export interface Box {
  readonly seats: number;
  readonly buyers: number;
  /** What the server says is left, each time that it is asked. */
  readonly available: () => number;
  /** Claims of people who are not of the crowd. */
  readonly others?: readonly Claim[];
  readonly signal?: AbortSignal;
}

/** A server with one pool that sells nothing to the crowd, and a ledger with the tickets of the others. */
export async function openBox(box: Box): Promise<Trial & { close(): Promise<void> }> {
  const { seats, buyers, available, others = [], signal = new AbortController().signal } = box;
  const server = createServer((request, response) => {
    const { status, body } =
      request.method === 'POST'
        ? { status: 409, body: { error: { code: 'sold_out', message: 'no seat is left', hint: '' } } }
        : {
            status: 200,
            body: request.url?.startsWith('/admin/claims')
              ? { items: others.map((claim) => ({ ...claim, state: 'committed' })), next: null }
              : { pool_id: 'p', status: 'open', capacity: seats, available: available() },
          };
    request.resume();
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ url, pool: 'p', seats, buyers, signal },
    admin: new AdminClient({ url, key: 'key' }),
    db2: ledgerWith(others.map(ticketOf)),
    tally: newTally(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
