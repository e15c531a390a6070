// A neighbour with a transaction that stays open: it holds the slots of its pool, or a request id, and buyers ask for them.

import pg from 'pg';
import { claimAgain, claimAll, HOSTILE_POOLS } from '../clients/hostile.ts';
import { NEIGHBOUR_PART } from '../schedule.ts';
import type { FaultKind } from './kind.ts';

/** They come again until they are answered: about a hundred requests a second. */
const BUYERS = 20;
const POOL = HOSTILE_POOLS.locked;
const HOLD_SLOTS = 'select from public.inventory_slots s where s.pool_id = $1 for update';
const HOLD_REQUEST = 'select public.claim_resource_and_queue($1, $2, $3)';

/** The plan says what is held: slots or request. */
export const stuckTransaction: FaultKind = {
  touches: () => 'claim',
  partsOf: () => [NEIGHBOUR_PART],
  async begin({ db1, traffic }, { target, atMs }) {
    const session = new pg.Client({ connectionString: db1.url, application_name: 'chaos neighbour' });
    // A database that dies meanwhile has ended the transaction, which is all that is wanted of it.
    session.on('error', () => undefined);
    await session.connect();
    const request = `stuck-${atMs}`;
    await session.query('begin');
    if (target === 'slots') await session.query(HOLD_SLOTS, [POOL]);
    else await session.query(HOLD_REQUEST, [POOL, `user ${request}`, request]);
    const over = new AbortController();
    const claims =
      target === 'slots'
        ? claimAll(traffic, POOL, request, BUYERS, BUYERS, over.signal)
        : claimAgain(traffic, POOL, request, BUYERS);
    return async () => {
      over.abort();
      await session.query('rollback').catch(() => undefined);
      await session.end().catch(() => undefined);
      await claims;
    };
  },
};
