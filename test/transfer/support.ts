// A pair of databases with something of everything in them, and what can be said about two pairs.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { migrate } from '../../src/migrate/migrate.ts';
import { applyPlatform } from '../../src/migrate/platform/platform.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { bury } from '../admin/support.ts';
import { runHere } from '../cli/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';

export type Pair = { DB1_URL: string; DB2_URL: string };

export interface World {
  /** A pair with pools, claims in several states, events and effects. */
  old: Pair;
  dir: string;
  file: string;
  /** Two more databases on the same servers, migrated and empty. */
  newPair(): Promise<Pair>;
  /** One that nothing was done to. */
  newDatabase(): Promise<string>;
  stop(): Promise<void>;
}

export const REPLAY_DEAD_LETTERS = `select * from public.replay_dead_letters($1, 'test', 'test')`;
export const DISCARD_DEAD_LETTERS = `select * from public.discard_dead_letters($1, 'test', 'test')`;

export async function startWorld(): Promise<World> {
  const databases = await startDatabases();
  const dir = mkdtempSync(join(tmpdir(), 'sluice-transfer-'));
  let count = 0;
  const old = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url };
  await furnish(old).catch(async (error) => {
    await databases.stop();
    throw error;
  });
  return {
    old,
    dir,
    file: join(dir, 'old.jsonl'),
    async newPair() {
      count++;
      const name = `new_${count}`;
      return { DB1_URL: await create(databases, 'db1', name), DB2_URL: await create(databases, 'db2', name) };
    },
    async newDatabase() {
      count++;
      await withClient(databases.db1.url, (client) => client.query(`create database bare_${count}`));
      return databases.db1.url.replace(/\/postgres$/, `/bare_${count}`);
    },
    async stop() {
      await databases.stop();
      rmSync(dir, { recursive: true });
    },
  };
}

async function create(databases: TestDatabases, side: 'db1' | 'db2', name: string): Promise<string> {
  await withClient(databases[side].url, (client) => client.query(`create database ${name}`));
  const url = databases[side].url.replace(/\/postgres$/, `/${name}`);
  await withClient(url, async (client) => {
    await applyPlatform(client);
    await migrate(client, join(PROJECT, side));
  });
  return url;
}

/** Text that a copy could spoil: the line end of JavaScript, quotes, a number beyond 2^53, a JSON null that is not NULL. */
const ODD_PAYLOAD = `{"number": 12345678901234567890, "text": ${JSON.stringify('a\u2028b"c\\d\n{},é')}}`;

export async function furnish(pair: Pair): Promise<void> {
  await withClient(pair.DB2_URL, async (db2) => {
    await db2.query(
      `select webhook.add_endpoint('stripe', 'stripe', '{STRIPE_WEBHOOK_SECRET}', 'queued', '{}', 'test')`,
    );
    await db2.query(`select webhook.allow_secret('SITE_SECRET', 'test')`);
    await db2.query(`select calls.add_site('site_1', '{SITE_SECRET}', true, null, 'test', 'test')`);
    await recordPayment(db2, 'evt_1', 'payment_intent.succeeded', { id: 'pi_1', amount_received: 2500 });
    await recordPayment(db2, 'evt_2', 'some.unknown.type', { id: 'x' });
    await db2.query('insert into public.calls (site_id, payload) values ($1, $2)', ['site_1', ODD_PAYLOAD]);
    await db2.query(
      `insert into public.webhook_side_effects (provider, event_id, payload) values ('twilio', 'SM1', 'null')`,
    );
  });
  await withClient(pair.DB1_URL, async (db1) => {
    await db1.query(`insert into public.engine_config (pool_id, max_per_user) values ('opera', 3)`);
    await db1.query(
      `insert into public.inventory_slots (pool_id) select 'opera' from generate_series(1, 20)`,
    );
    await claim(db1, 'ann', 'ann-1');
    await claim(db1, 'bob', 'bob-1');
    await furnishOrders(db1);
  });
  await work(pair);
  await withClient(pair.DB1_URL, async (db1) => {
    const [, second] = await bury(db1, 'opera', 2);
    await db1.query(DISCARD_DEAD_LETTERS, [[second]]);
    await claim(db1, 'cat', 'cat-1');
    await claim(db1, 'dan', 'dan-1');
    await db1.query(
      `delete from public.inventory_slots s using public.claims c where c.request_id = 'dan-1' and s.id = c.slot_id`,
    );
  });
}

/** One order is paid, one waits with a session; one payment could not buy. */
async function furnishOrders(db1: pg.Client): Promise<void> {
  await db1.query(`select public.pool_create('gala', 4, '{"confirm_by": "payment", "price": 1000, "currency": "eur",
    "payment_tenant": "stripe", "hold_sec": 600, "max_quantity": 2}', 'test')`);
  await db1.query(`select public.set_pool_details('gala', '{"title": "Gala"}', 'test')`);
  await db1.query(`update public.inventory_slots set label = 'seat ' || sale_order where pool_id = 'gala'`);
  await db1.query(
    `select public.claim_batch('{gala,gala}', '{ann,bob}', '{o1,o2}', p_quantities => '{2,1}')`,
  );
  await db1.query(
    `select public.settle_payment(jsonb_build_object('payment_key', 'stripe/pi_' || n, 'tenant', 'stripe', 'livemode', true,
       'claim_id', o.order_id, 'user_id', 'ann', 'amount', 2000, 'currency', 'eur'), false)
     from public.orders o, generate_series(7, 8) n where o.user_id = 'ann'`,
  );
  await db1.query(
    `select public.begin_checkout(o.order_id, 'bob', 'https://example.com') from public.orders o where o.user_id = 'bob'`,
  );
}

export async function claim(db1: pg.Client, user: string, request: string): Promise<string> {
  const { rows } = await db1.query(`select public.claim_resource_and_queue('opera', $1, $2) as slot`, [
    user,
    request,
  ]);
  return rows[0].slot;
}

export async function recordPayment(
  db2: pg.Client,
  eventId: string,
  type: string,
  object: Record<string, unknown>,
): Promise<string> {
  const payload = JSON.stringify({
    id: eventId,
    type,
    created: 1_772_366_400,
    api_version: '2025-01-01',
    data: { object: { object: 'payment_intent', currency: 'eur', metadata: { user_id: 'ann' }, ...object } },
  });
  const { rows } = await db2.query(
    `select r.outcome from webhook.record_events(
       array[(select webhook_id from public.webhook_endpoints where name = 'stripe')], array[$1], array[$2],
       array['2026-03-01T12:00:00Z'::timestamptz], array[$3], null, null, array[$3], null, null, null) r`,
    [eventId, type, payload],
  );
  return rows[0].outcome;
}

/** Everything that is ready takes its way. */
export async function work(pair: Pair): Promise<void> {
  const { code, stderr } = await runHere(['work', '--once'], pair);
  if (code !== 0) throw new Error(stderr);
}

/** The content of each table of ours, as a hash; with the catalog's columns, so that a changed table shows too. */
export async function contentOf(url: string): Promise<Record<string, string>> {
  return withClient(url, async (client) => {
    const { rows: tables } = await client.query(
      `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relkind in ('r', 'p') and n.nspname in ('public', 'intake', 'audit', 'webhook', 'calls', 'pgmq', 'supabase_migrations')
       order by 1`,
    );
    const content: Record<string, string> = {};
    for (const { name } of tables) {
      const { rows } = await client.query(
        `select md5(coalesce(string_agg(t::text, e'\\n' order by t::text), '')) || ' of ' || count(*) as hash from ${name} t`,
      );
      content[name] = rows[0].hash;
    }
    const { rows } = await client.query(
      `select md5(string_agg(format('%s %s %s', a.attrelid::regclass, a.attname, a.atttypid::regtype), ' ' order by 1, a.attnum)) as hash
       from pg_attribute a join pg_class c on c.oid = a.attrelid where c.relnamespace::regnamespace::text !~ '^pg_' group by ()`,
    );
    return { ...content, catalog: rows[0].hash };
  });
}
