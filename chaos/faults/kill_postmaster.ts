import type { FaultKind } from './kind.ts';

/** kill -9 of a postmaster; the server is started again on its data. */
export const killPostmaster = (side: 'db1' | 'db2'): FaultKind => ({
  touches: () => (side === 'db1' ? 'claim' : 'event'),
  partsOf: () => [side],
  async begin(world) {
    await world[side].killPostmaster();
    return () => world[side].startAgain();
  },
});
