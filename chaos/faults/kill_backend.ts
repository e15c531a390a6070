import type { FaultKind } from './kind.ts';

/** kill -9 of one backend: Postgres ends every session, recovers by itself, and what was UNLOGGED is empty. */
export const killBackend = (side: 'db1' | 'db2'): FaultKind => ({
  touches: () => (side === 'db1' ? 'claim' : 'event'),
  partsOf: () => [side],
  async begin(world, _plan, random) {
    await world[side].killBackend(random);
    return undefined;
  },
});
