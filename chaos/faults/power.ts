// A power cut: every process stands still, the disk is what it was at that moment, and nothing that ran before runs again.

import type { FaultKind } from './kind.ts';

const SIDES = ['db1', 'db2'] as const;

/** Of the machine of one database, or of a machine on which everything runs. */
export const POWER_CUT_TARGETS = ['db1', 'db2', 'machine'] as const;

export const powerCut: FaultKind = {
  touches: (target) => (target === 'db2' ? 'event' : 'claim'),
  partsOf: (target, { servers, workers }) =>
    target === 'machine' ? [...SIDES, ...[...servers, ...workers].map(({ name }) => name)] : [target],
  async begin(world, { target }) {
    const databases = SIDES.filter((side) => target === side || target === 'machine').map(
      (side) => world[side],
    );
    const processes = target === 'machine' ? [...world.servers, ...world.workers] : [];
    for (const one of processes) one.stall();
    for (const database of databases) database.freeze();
    for (const database of databases) database.losePower();
    await Promise.all([
      ...databases.map((database) => database.dies()),
      ...processes.map((one) => one.kill()),
    ]);
    return async () => {
      await Promise.all(databases.map((database) => database.startAgain()));
      await Promise.all(processes.map((one) => one.start()));
    };
  },
};
