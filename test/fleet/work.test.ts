import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { NO_METRICS } from '#core/ports.ts';
import { drainCells, startCellCrews } from '../../src/fleet/crews.ts';
import { createLog } from '../../src/log.ts';
import { query, startFleet, type TestFleet } from './support.ts';

const claimSome = (url: string, pool: string, from: number, to: number) =>
  query(
    url,
    `select public.claim_resource_and_queue($1, 'user ' || n) from generate_series($2::int, $3::int) n`,
    [pool, from, to],
  );

function optionsOf({ a, db2, cells }: TestFleet, more = cells) {
  return {
    db1Url: a.url,
    cells: more,
    db2Url: db2.url,
    workers: 2,
    batchSize: 100,
    allowedHosts: new Set<string>(),
    log: createLog(),
    metrics: NO_METRICS,
  };
}

async function ticketsOf(fleet: TestFleet, pool: string): Promise<number> {
  const [row] = await query<{ n: number }>(
    fleet.db2.url,
    'select count(*)::int as n from public.confirmed_tickets where pool_id = $1',
    [pool],
  );
  return row?.n ?? 0;
}

async function eventually(what: () => Promise<boolean>): Promise<void> {
  while (!(await what())) await delay(50);
}

test('two workers carry from all cells to the one ledger, and a cell that is down stops only its own claims', async (t) => {
  const fleet = await startFleet(t);
  for (const [cell, pool] of [
    [fleet.a, 'in_a'],
    [fleet.b, 'in_b'],
  ] as const)
    await query(cell.url, `select public.pool_create($1, 60, '{}', 'test')`, [pool]);
  const workers = [startCellCrews(optionsOf(fleet)), startCellCrews(optionsOf(fleet))];
  let isStopped = false;
  const stop = async () => {
    if (!isStopped) await Promise.all(workers.map((worker) => worker.stop()));
    isStopped = true;
  };
  t.after(stop);
  await claimSome(fleet.a.url, 'in_a', 1, 20);
  await claimSome(fleet.b.url, 'in_b', 1, 20);
  await eventually(
    async () => (await ticketsOf(fleet, 'in_a')) === 20 && (await ticketsOf(fleet, 'in_b')) === 20,
  );

  await stop();
  await claimSome(fleet.b.url, 'in_b', 21, 30);
  await fleet.b.stop('immediate');
  await claimSome(fleet.a.url, 'in_a', 21, 40);
  const drained = await drainCells(optionsOf(fleet), new AbortController().signal);
  assert.deepEqual([drained.away, drained.totals.committed], [['b'], 20]);
  assert.equal(await ticketsOf(fleet, 'in_a'), 40);
  assert.equal(await ticketsOf(fleet, 'in_b'), 20);

  const back = await fleet.b.restart();
  const cells = [...fleet.cells.slice(0, 1), { name: 'b', url: back.url }];
  const rest = await drainCells(optionsOf(fleet, cells), new AbortController().signal);
  assert.deepEqual([rest.away, rest.totals.committed], [[], 10]);
  assert.equal(await ticketsOf(fleet, 'in_b'), 30);
  // The control: a fleet of one that is down is an error, not a cell that is away.
  await fleet.a.stop('immediate');
  await assert.rejects(drainCells(optionsOf(fleet, fleet.cells.slice(0, 1)), new AbortController().signal));
});
