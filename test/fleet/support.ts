// Two cells and a ledger: real servers, joined to a fleet.

import type { TestContext } from 'node:test';
import pg from 'pg';
import type { CallFunction } from '#core/call_function.ts';
import { createDatabase } from '../../src/db/database.ts';
import type { CellAddress } from '../../src/fleet/addresses.ts';
import { createLog } from '../../src/log.ts';
import { startDatabases, type TestDatabase } from '../support/databases.ts';

export interface TestFleet {
  a: TestDatabase;
  b: TestDatabase;
  db2: TestDatabase;
  cells: CellAddress[];
}

process.env.SLUICE_LOG ??= 'silent';

/** Cells a (number 0) and b (number 1), and the ledger. */
export async function startFleet(t: TestContext, { withLedger = true } = {}): Promise<TestFleet> {
  const [first, second] = await Promise.all([
    startDatabases({ db2: withLedger }),
    startDatabases({ db2: false }),
  ]);
  t.after(() => Promise.all([first.stop(), second.stop()]));
  const cells = [
    { name: 'a', url: first.db1.url },
    { name: 'b', url: second.db1.url },
  ];
  for (const [number, { name, url }] of cells.entries())
    await query(url, 'select public.cell_join($1, $2, $3)', [name, number, 'test']);
  return {
    a: first.db1,
    b: second.db1,
    get db2() {
      return first.db2;
    },
    cells,
  };
}

export async function query<Row extends Record<string, unknown>>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text, values)).rows as Row[];
  } finally {
    await client.end();
  }
}

/** Functions of schema public of a database, until the test is over. */
export function caller(t: TestContext, url: string): CallFunction {
  const db = createDatabase({ url, max: 2, applicationName: 'test', log: createLog() });
  t.after(() => db.end());
  return (name, args) => db.call(`public.${name}`, args);
}

/** All of a pool that must be there once, as text that can be compared: ids of slots, claims with their states, letters. */
export async function contentsOf(url: string, pool: string): Promise<Record<string, unknown>> {
  const [row] = await query(
    url,
    `select
      (select jsonb_agg(to_jsonb(c) - 'lane') from public.engine_config c where c.pool_id = $1) as config,
      (select jsonb_agg(to_jsonb(m) - 'sale_order' order by m.slot_id) from public.slot_manifest m where m.pool_id = $1) as slots,
      (select jsonb_agg(to_jsonb(c) order by c.claim_id) from public.claims c where c.pool_id = $1) as claims,
      (select jsonb_agg(jsonb_build_array(s.id, s.status, s.locked_by, s.sale_order, s.label) order by s.id)
        from public.inventory_slots s where s.pool_id = $1) as cache,
      (select jsonb_agg(jsonb_build_array(d.msg_id, d.message) order by d.msg_id)
        from pgmq.q_intake_dlq d where d.message ->> 'pool_id' = $1) as letters,
      (select jsonb_agg(r order by r.request_id) from intake.pool_requests r where r.pool_id = $1) as requests,
      (select jsonb_agg(d) from public.pool_details d where d.pool_id = $1) as details,
      (select jsonb_agg(o order by o.order_id) from public.orders o where o.pool_id = $1) as orders,
      (select jsonb_agg(p order by p.payment_key) from public.order_payments p
        join public.orders o on o.order_id = p.order_id where o.pool_id = $1) as payments,
      (select jsonb_agg(k order by k.order_id, k.n) from public.checkouts k
        join public.orders o on o.order_id = k.order_id where o.pool_id = $1) as checkouts,
      (select t.slots from intake.pool_totals t where t.pool_id = $1) as total,
      (select count(*)::int from intake.parcels p where p.pool_id = $1) as parcels`,
    [pool],
  );
  return row ?? {};
}

/** A closed pool at rest: tickets, a dead letter, a released claim and free slots. */
export async function furnishPool(url: string, pool: string): Promise<void> {
  await query(url, `select public.pool_create($1, 40, '{"max_per_user": 5}', 'test', null, 'made once')`, [
    pool,
  ]);
  await query(
    url,
    `select public.claim_resource_and_queue($1, 'user ' || n, 'request ' || n) from generate_series(1, 12) n`,
    [pool],
  );
  await query(
    url,
    `select public.release_own_claim(c.claim_id, c.user_id) from public.claims c where c.pool_id = $1 and c.user_id = 'user 12'`,
    [pool],
  );
  await query(
    url,
    `select public.intake_route_to_dlq(q.msg_id, q.message || '{"reason": "test"}', 0)
     from pgmq.q_intake_queue q where q.message ->> 'pool_id' = $1 and q.message ->> 'user_id' in ('user 1', 'user 2')`,
    [pool],
  );
  await query(
    url,
    `with taken as (update public.inventory_slots s set status = 'CONSUMED' from public.claims c
       where c.slot_id = s.id and c.pool_id = $1 and c.state = 'queued' returning s.id)
     select count(*) from taken`,
    [pool],
  );
  await query(
    url,
    `select public.intake_queue_delete(array(
       select q.msg_id from pgmq.q_intake_queue q where q.message ->> 'pool_id' = $1))`,
    [pool],
  );
  await query(url, `select public.pool_change($1, '{"is_active": false}', 0, 'test')`, [pool]);
}
