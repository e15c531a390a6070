// Faults of a database server: it recovers from its write-ahead log, and what was UNLOGGED is empty.

import type { FaultKind } from './kind.ts';

type Side = 'db1' | 'db2';

const on = (side: Side, begin: FaultKind['begin']): FaultKind => ({
  touches: () => (side === 'db1' ? 'claim' : 'event'),
  partsOf: () => [side],
  begin,
});

/** kill -9 of one backend: Postgres ends every session and recovers by itself. */
export const killBackend = (side: Side): FaultKind =>
  on(side, async (world, _plan, random) => {
    await world[side].killBackend(random);
    return undefined;
  });

/** kill -9 of a postmaster; the server is started again on its data. */
export const killPostmaster = (side: Side): FaultKind =>
  on(side, async (world) => {
    await world[side].killPostmaster();
    return () => world[side].startAgain();
  });

/** `pg_ctl stop -m immediate`: no checkpoint, no goodbye. */
export const stopImmediate = (side: Side): FaultKind =>
  on(side, async (world) => {
    await world[side].stopImmediately();
    return () => world[side].startAgain();
  });
