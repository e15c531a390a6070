import type { FaultKind } from './kind.ts';

/** `pg_ctl stop -m immediate`: no checkpoint, no goodbye; the next start recovers from the write-ahead log. */
export const stopImmediate = (side: 'db1' | 'db2'): FaultKind => ({
  touches: () => (side === 'db1' ? 'claim' : 'event'),
  partsOf: () => [side],
  async begin(world) {
    await world[side].stopImmediately();
    return () => world[side].startAgain();
  },
});
