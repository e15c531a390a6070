// What is measured. Repetitions go round all cells of a group (A B C, A B C, …), so that a slow minute of the machine hits
// all alike.

export type RouteCell = {
  name: 'single' | 'coalesced' | 'coalesced-stub';
  /** HTTP connections. */
  clients: number;
  batch: 1;
  /** Of the server to DB2, for recording. */
  db_connections: number;
  seconds: number;
};

export type DrainCell = {
  name: 'process' | 'graphile-worker';
  /** Loops, or jobs at a time. */
  clients: number;
  batch: number;
  events: number;
  warmUpEvents: number;
};

export type Cell = RouteCell | DrainCell;

export type Plan = { repetitions: number; groups: Cell[][] };

export const POOL = 10;

export function makePlan(quick: boolean): Plan {
  const seconds = quick ? 1 : 5;
  const events = quick ? 2_000 : 40_000;
  const warmUpEvents = quick ? 0 : 4_000;
  const doors = (clients: number): Cell[] => [
    { name: 'single', clients, batch: 1, db_connections: 1, seconds },
    { name: 'single', clients, batch: 1, db_connections: POOL, seconds },
    { name: 'coalesced', clients, batch: 1, db_connections: 1, seconds },
    { name: 'coalesced-stub', clients, batch: 1, db_connections: 1, seconds },
  ];
  const drain = (name: DrainCell['name'], clients: number, batch: number): Cell => ({
    name,
    clients,
    batch,
    events,
    warmUpEvents,
  });
  return {
    repetitions: quick ? 1 : 3,
    groups: [
      ...(quick ? [64] : [64, 256]).map(doors),
      [
        // The default of `sluice work` is 2 loops with batches of 100.
        ...[1, 2].map((loops) => drain('process', loops, 100)),
        drain('process', 2, 1_000),
        // 24 is what its performance page uses; 48 was its best in the bridge suite.
        ...[24, 48].map((jobs) => drain('graphile-worker', jobs, 1)),
      ],
    ],
  };
}
