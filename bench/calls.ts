// The calls suite: call events a second through HTTP, verified and durable: one insert each against the coalesced door.

import { type Cell, measure } from './calls/measure.ts';
import { SITE } from './calls/servers.ts';
import { column, cpuColumns, makeTable, mediansOf, NAME, runRounds, SPEED, sumOf } from './rows.ts';
import { type Demand, defineSuite, demandOf, isChosen, quotient, type Row } from './suite.ts';
import { openWorld } from './world.ts';

const POOL_CONNECTIONS = 10;
const REPETITIONS = 3;
const RUN_SEC = 10;
const QUICK_SEC = 1;

export const calls = defineSuite({
  summary: 'call events a second through HTTP: one insert each, coalesced',
  rowNames: (quick) => makeCells(quick).map(({ name }) => name),
  createWorld: () =>
    openWorld({}, async ({ db2 }) => {
      await db2.ask(
        `insert into public.call_sites (site_id, secret_names) values ($1, '{OPS_SITE_SECRET}')`,
        [SITE],
      );
    }),
  async measure(world, options) {
    const { quick, progress } = options;
    const cells = makeCells(quick).filter(({ name }) => isChosen(options, name));
    const taken = await runRounds(cells, quick ? 1 : REPETITIONS, (cell, round) => {
      const { name, clients, db_connections } = cell;
      progress(`round ${round}: ${name}, ${clients} clients, ${db_connections} connections`);
      return measure(world, cell);
    });
    return taken.map(([cell, samples]) => ({
      ...mediansOf(samples),
      ...cell,
      batch: 1,
      refused: sumOf(samples, ({ refused = 0 }) => refused),
    }));
  },
  demands,
  table: (rows) =>
    makeTable(
      [
        ...[NAME, column('clients', 'clients'), column('connections', 'db_connections')],
        ...[...SPEED, ...cpuColumns(rows), column('WAL bytes', 'wal_bytes_per_op')],
      ],
      rows,
    ),
});

function makeCells(quick: boolean): Cell[] {
  const seconds = quick ? QUICK_SEC : RUN_SEC;
  return (quick ? [64] : [64, 256]).flatMap((clients): Cell[] => [
    { name: 'single', clients, db_connections: 1, seconds },
    { name: 'single', clients, db_connections: POOL_CONNECTIONS, seconds },
    { name: 'coalesced', clients, db_connections: 1, seconds },
  ]);
}

function demands(rows: readonly Row[]): Demand[] {
  return [...new Set(rows.map(({ clients }) => clients))].flatMap((clients) => {
    const rate = (name: string, connections: number) =>
      rows.find((row) => row.name === name && row.clients === clients && row.db_connections === connections)
        ?.rate;
    return [1, POOL_CONNECTIONS].map((connections) =>
      demandOf(
        `coalesced / single on ${connections} connections, at ${clients} clients`,
        1,
        quotient(rate('coalesced', 1), rate('single', connections)),
      ),
    );
  });
}
