// However large the table has grown since the plans were made, and without statistics: no hot statement reads it whole.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { useDatabase } from '../support/suite.ts';
import { openShop, process, record, take } from './sql_support.ts';

const OLD_EVENTS = 50_000;
const BATCH = 50;
/** Measured: 8 blocks by the index, 971 without. */
const BLOCKS_MAX = 100;
/** After five calls Postgres may keep one plan for all that follow. */
const CALLS_UNTIL_PLANS_STAY = 7;

describe('the plans of the hot statements', () => {
  const { session } = useDatabase('db2', ['session'], { settings: { autovacuum: 'off' } });
  let shop: string;
  let serial = 0;

  const fresh = () => Array.from({ length: BATCH }, () => `evt-${++serial}`);
  const rowsReadInSequence = async () => {
    await session.value('select pg_stat_force_next_flush()');
    return Number(
      await session.value<string>(
        `select seq_tup_read from pg_stat_user_tables where relid = 'public.webhook_events'::regclass`,
      ),
    );
  };
  const scannedBy = async (work: () => Promise<unknown>) => {
    const before = await rowsReadInSequence();
    await work();
    return (await rowsReadInSequence()) - before;
  };
  /** New events, the same again, and the way of all of them through a worker. */
  const round = async () => {
    const ids = fresh();
    await record(session, shop, ids);
    assert.equal((await record(session, shop, ids))[0]?.outcome, 'duplicate');
    const leases = await take(session, BATCH);
    assert.equal(leases.length, BATCH);
    const held = [leases.map(({ id }) => id), leases.map(({ lease_token }) => lease_token)];
    await session.rows('select webhook.extend_leases($1, $2)', held);
    assert.deepEqual(new Set(await process(session, leases)), new Set(['success']));
  };

  before(async () => {
    shop = await openShop(session);
  });

  test('made on an empty table, they read none of the many rows that came later', async () => {
    for (let call = 0; call < CALLS_UNTIL_PLANS_STAY; call += 1) await round();
    await session.client.query(
      `insert into public.webhook_events (webhook_id, provider, event_id, status, next_attempt_at)
       select $1, 'shop', 'old-' || n, 'success', null from generate_series(1, $2) n`,
      [shop, OLD_EVENTS],
    );
    assert.equal(await scannedBy(round), 0);
  });

  test('tens of thousands of events in another lane cost the take nothing: the same blocks as without them', async () => {
    const LANE = `(select lane from public.webhook_handlers where name = 'app.act')`;
    const blocksOf = async (call: string) => {
      const [plan] = await session.value<[{ Plan: Record<string, number> }]>(
        `explain (analyze, buffers, format json) select * from ${call}`,
      );
      return (plan.Plan['Shared Hit Blocks'] ?? 0) + (plan.Plan['Shared Read Blocks'] ?? 0);
    };
    /** What a worker does for ten events, and its look for lanes. Twice: the first has to look up the catalog. */
    const cost = async () => {
      let blocks: number[] = [];
      for (let turn = 0; turn < 2; turn += 1) {
        await record(session, shop, fresh());
        blocks = [
          await blocksOf(`webhook.take_events(array[${LANE}], array[10])`),
          await blocksOf('webhook.event_lanes()'),
          await blocksOf(`webhook.take_suspect(array[${LANE}])`),
        ];
        await session.client.query(
          `delete from public.webhook_events where event_type = 'act' and status <> 'success'`,
        );
        await session.client.query('vacuum public.webhook_events');
      }
      return blocks;
    };
    await session.client.query(
      `insert into public.webhook_handlers (provider, event_type, kind, name)
       values ('shop', 'parked', 'typescript', 'elsewhere')`,
    );
    const quiet = await cost();
    await session.client.query(
      `insert into public.webhook_events (webhook_id, provider, event_id, event_type, next_attempt_at, status, lane)
       select $1, 'shop', 'parked-' || n, 'parked', now() - interval '1 hour', 'pending',
         (select lane from public.webhook_handlers where name = 'elsewhere')
       from generate_series(1, $2) n`,
      [shop, OLD_EVENTS],
    );
    const beside = await cost();
    for (const [at, blocks] of beside.entries())
      assert(blocks <= (quiet[at] ?? 0) * 1.5 + 8, `${beside} blocks, and ${quiet} without the backlog`);
    await session.client.query(`delete from public.webhook_handlers where name = 'elsewhere'`);
    await session.client.query(`delete from public.webhook_events where event_type = 'parked'`);
    await session.client.query('vacuum public.webhook_events');
  });

  test('negative control: a statement that reads the table is seen', async () => {
    const count = 'select count(*) from public.webhook_events where error is null';
    assert(
      (await scannedBy(() => session.rows(`set max_parallel_workers_per_gather = 0; ${count}`))) > OLD_EVENTS,
    );
  });

  test('the dead letters, the newest and the oldest are found among all others by their index', async () => {
    await session.client.query('analyze public.webhook_events');
    const blocksFor = async (status: string) => blocksOf(`p_statuses => array['${status}']`);
    const blocksOf = async (filter: string) => {
      const [plan] = await session.value<[{ Plan: Record<string, number> }]>(
        `explain (analyze, buffers, format json) select * from webhook.list_events(${filter})`,
      );
      return (plan.Plan['Shared Hit Blocks'] ?? 0) + (plan.Plan['Shared Read Blocks'] ?? 0);
    };
    // Once for what the first call has to look up in the catalog.
    await blocksFor('dead_letter');
    assert((await blocksFor('dead_letter')) < BLOCKS_MAX);
    const middle = await session.value<string>(
      'select e.id from public.webhook_events e order by e.id offset (select count(*) / 2 from public.webhook_events) limit 1',
    );
    for (const order of ['p_limit => 5, p_newest_first => true', 'p_limit => 5, p_newest_first => false'])
      for (const page of [order, `${order}, p_after => '${middle}'`])
        assert((await blocksOf(page)) < BLOCKS_MAX, page);
    // Negative control: a state without such an index is looked for in the whole table.
    assert((await blocksFor('skipped')) > BLOCKS_MAX);
  });
});
