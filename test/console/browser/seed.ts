// Pools in every state, claims on their way, and dead letters with a cause that can be repaired.

import { setTimeout as pause } from 'node:timers/promises';
import { putOnSale } from '../../server/support.ts';
import { claimMany } from '../../work/support.ts';
import type { House } from './support.ts';

const DAY_MS = 86_400_000;
/** The second attempt is the last one: dead within moments. */
const SOON_DEAD = { max_retries: 2, visibility_timeout_sec: 1 };
const POLL_MS = 50;

/** One more failure in a row would count as an outage of the service, and an outage uses up no attempts. */
export const LETTERS_A_POOL = 2;

/** A pool whose validation service answers 500, with two of its claims among the dead letters. */
export async function bury({ db1, validation }: House, pool: string): Promise<void> {
  const validation_webhook_url = `${validation.url}${pool}`;
  await putOnSale(db1, pool, 400, { validation_webhook_url, ...SOON_DEAD });
  validation.status = 500;
  await claimMany(db1, pool, LETTERS_A_POOL);
  const count = `select count(*)::int from pgmq.q_intake_dlq where message ->> 'pool_id' = $1`;
  while ((await db1.query(count, [pool])).rows[0].count < LETTERS_A_POOL) {
    // What has failed once is due again at once.
    await db1.query(
      `update pgmq.q_intake_queue set vt = clock_timestamp()
       where vt > clock_timestamp() and message ? 'last_error' and message ->> 'pool_id' = $1 and read_ct = 1`,
      [pool],
    );
    await pause(POLL_MS);
  }
}

export async function seed(house: House): Promise<void> {
  const { db1 } = house;
  const tomorrow = new Date(Date.now() + DAY_MS).toISOString();
  await putOnSale(db1, 'concert_2026', 20_000, { max_per_user: 4 });
  await putOnSale(db1, 'early_bird', 500, { commit_rate_per_sec: 400 });
  await putOnSale(db1, 'vip_lounge', 50, { opens_at: tomorrow, require_auth: true });
  await putOnSale(db1, 'backstage', 40, { is_active: false });
  await claimMany(db1, 'early_bird', 470);
  await bury(house, 'members');
  await bury(house, 'partners');
}

/** Claims in waves, each second, until the returned function is called. */
export function startTraffic({ db1 }: House, pool: string, mean: number): () => Promise<void> {
  const stopped = new AbortController();
  const run = async (): Promise<void> => {
    for (let second = 0, user = 0; !stopped.signal.aborted; second++) {
      const claims = Math.round(mean * (1 + 0.6 * Math.sin(second / 9) + 0.2 * Math.cos(second * 2.3)));
      const users = Array.from({ length: claims }, () => `user ${user++}`);
      await db1.query(
        'select count(*) from public.claim_batch(array_fill($1::text, array[cardinality($2::text[])]), $2, $2)',
        [pool, users],
      );
      await pause(1_000, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return () => {
    stopped.abort();
    return running;
  };
}
