// Something of everything that operators act on, and both databases as hashes to compare.

import type pg from 'pg';
import { WRITTEN_MEANWHILE } from '../abuse/fingerprint.ts';
import { bury } from '../admin/support.ts';
import { claim, putOnSale } from '../server/support.ts';

export interface Furnished {
  readonly letters: readonly number[];
  /** Claims that wait. */
  readonly claims: readonly string[];
  readonly events: readonly string[];
  readonly deliveries: readonly number[];
  readonly call: string;
  readonly order: string;
  readonly refunds: readonly string[];
}

/** Each thing is called `mark`, or has it in its name. The server at `url` takes the claims. */
export async function furnish(db1: pg.Client, db2: pg.Client, url: string, mark: string): Promise<Furnished> {
  await putOnSale(db1, mark, 20);
  const letters = await bury(db1, mark, 3);
  const claims: string[] = [];
  for (let n = 0; n < 2; n++)
    claims.push((await claim(url, mark, { user_id: `${mark} buyer` })).json.claim_id);
  await db2.query(`select webhook.add_endpoint($1, 'stripe', '{OPS_SITE_SECRET}', 'queued', '{}', 'ann')`, [
    mark,
  ]);
  const { rows: events } = await db2.query(
    `insert into public.webhook_events (webhook_id, event_id, status, error, payload, raw_body)
     select e.webhook_id, $1 || n, 'dead_letter', $1, jsonb_build_object('note', $1::text), $2
     from public.webhook_endpoints e, generate_series(1, 2) n returning id`,
    [mark, Buffer.from(mark)],
  );
  await db2.query(
    `insert into public.payments (provider, object_id, told, occurred_at, arrival, last_event_id, amount, currency, captured)
     values ('stripe', $1, 'succeeded', now(), 1, 'evt_1', 1, 'eur', 1)`,
    [mark],
  );
  await db2.query(
    `select calls.record_calls(array[$1], array['1'], array['ring'], array[jsonb_build_object('note', $1)::text],
       array[now()], array['x'])`,
    [mark],
  );
  const { rows: calls } = await db2.query('select id from public.calls');
  const delivery = { kind: 'event', door: mark, received_at: '2026-02-24T10:00:00Z', ids: [mark] };
  await db1.query('select public.inbox_accept($1)', [JSON.stringify([delivery])]);
  const { rows: deliveries } = await db1.query(
    `insert into pgmq.q_event_inbox_dlq (vt, message)
     select now(), $1::jsonb from generate_series(1, 2) returning msg_id::int`,
    [delivery],
  );
  await db1.query(`select public.set_pool_details($1, jsonb_build_object('title', $1::text), 'ann')`, [mark]);
  const { order, refunds } = await furnishOrders(db1, db2, mark);
  return {
    letters,
    claims,
    events: events.map(({ id }) => id),
    deliveries: deliveries.map(({ msg_id }) => msg_id),
    call: calls[0].id,
    order,
    refunds,
  };
}

async function furnishOrders(
  db1: pg.Client,
  db2: pg.Client,
  mark: string,
): Promise<Pick<Furnished, 'order' | 'refunds'>> {
  const paid = {
    confirm_by: 'payment',
    price: 100,
    currency: 'eur',
    payment_tenant: 'stripe',
    hold_sec: 3600,
  };
  await putOnSale(db1, `${mark}-paid`, 1, paid);
  const { rows: orders } = await db1.query(
    `select claim_id from public.claim_batch(array[$1 || '-paid'], array[$1 || ' buyer'], array[null::text])`,
    [mark],
  );
  const { rows: refunds } = await db2.query(
    `insert into public.refunds_due (id, payment_key, amount, currency, reason, state, is_auto, refund_key)
     select 'settle:stripe/' || $1 || n, 'stripe/' || $1 || n, 100, 'eur', 'sold_out', 'review', true, $1 || n
     from generate_series(1, 2) n returning id`,
    [mark],
  );
  return { order: orders[0].claim_id, refunds: refunds.map(({ id }) => id) };
}

/**
 * All rows of all tables of ours: a hash for each table. Left out are when an operator's key was last used, and DB2's copy of the
 * operators, which servers write.
 */
export async function fingerprintOf(db1: pg.Client, db2: pg.Client): Promise<ReadonlyMap<string, string>> {
  const sides = await Promise.all(
    [db1, db2].map(async (db, index) => {
      const { rows: tables } = await db.query<{ name: string }>(
        `select format('%I.%I', n.nspname, c.relname) as name from pg_class c
         join pg_namespace n on n.oid = c.relnamespace
         where c.relkind = 'r' and n.nspname in ('public', 'intake', 'audit', 'pgmq', 'webhook', 'calls', 'cron')
           and c.relname not in (${WRITTEN_MEANWHILE})`,
      );
      const own = tables.filter(({ name }) => index === 0 || name !== 'audit.operators');
      const hashes = own.map(
        ({
          name,
        }) => `select 'db${index + 1} ${name}' as name, md5(coalesce(string_agg(r, ',' order by r), '')) as hash
           from ${name} t cross join lateral (select (to_jsonb(t) - 'last_used_at')::text as r) x`,
      );
      return (await db.query<{ name: string; hash: string }>(hashes.join(' union all '))).rows;
    }),
  );
  return new Map(sides.flat().map(({ name, hash }) => [name, hash]));
}

/** Servers copy a new operator to DB2 within ten seconds, and DB2's log says so: what compares the databases begins after it. */
export async function untilCopied(db1: pg.Client, db2: pg.Client): Promise<void> {
  const names = async (db: pg.Client) =>
    (await db.query('select name from audit.operators order by name')).rows.map(({ name }) => name).join();
  while ((await names(db1)) !== (await names(db2))) await new Promise((resolve) => setTimeout(resolve, 50));
}
