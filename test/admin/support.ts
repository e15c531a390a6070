import type pg from 'pg';
import { openClient } from '../server/support.ts';

/** Claims slots of a pool and buries the messages, as a bridge that gave up would. Returns the letters' ids. */
export async function bury(
  db1: pg.Client,
  pool: string,
  count: number,
  reason = 'max_retries',
): Promise<number[]> {
  await db1.query(
    `select public.claim_resource_and_queue($1, 'user ' || i) from generate_series(1, $2::int) i`,
    [pool, count],
  );
  const { rows } = await db1.query(
    'select * from public.bridge_take(array[intake.lane_of($2)], array[$1::int], 60)',
    [count, pool],
  );
  await db1.query('select * from public.bridge_finish($1, $2, $3, $4, $5)', [
    rows.map((row) => row.msg_id),
    rows.map((row) => row.read_ct),
    rows.map(() => 'dead_letter'),
    rows.map(() => reason),
    rows.map(() => 0),
  ]);
  const letters = await db1.query(
    `select msg_id from pgmq.q_intake_dlq where message ->> 'pool_id' = $1 order by msg_id desc limit $2`,
    [pool, count],
  );
  return letters.rows.map((row) => Number(row.msg_id)).reverse();
}

/** What is to end has ended, as a worker does it that finds no ticket in the ledger. Returns how many. */
export async function finishEnds(db1: pg.Client): Promise<number> {
  // Who tried before, in vain, has them under a lease of a second.
  for (;;) {
    const { rows } = await db1.query(
      `select public.finish_ends(array_agg(claim_id), array_agg('voided'::text)) as n from public.take_ends(1000, 10)`,
    );
    const left = await db1.query('select from public.claims where end_as is not null and freed_at is null');
    if (rows[0].n > 0 || left.rowCount === 0) return rows[0].n;
  }
}

export async function auditCount(db1: pg.Client, action: string): Promise<number> {
  const { rows } = await db1.query('select count(*)::int as n from audit.audit_logs where action = $1', [
    action,
  ]);
  return rows[0].n;
}

/** While `work` runs, the ledger cannot be told of ends. */
export async function withoutTombstones(db2Url: string, work: () => Promise<void>): Promise<void> {
  const db2 = await openClient(db2Url);
  try {
    await db2.query('alter function public.void_tickets(jsonb) rename to void_tickets_away');
    try {
      await work();
    } finally {
      await db2.query('alter function public.void_tickets_away(jsonb) rename to void_tickets');
    }
  } finally {
    await db2.end();
  }
}
