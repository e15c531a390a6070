// Workers that die one after the other: kill -9, each started again before the next is killed, so that one always works.

import { setTimeout as pause } from 'node:timers/promises';
import { NEIGHBOUR_PART, WORKERS } from '../schedule.ts';
import { LEASE_SEC } from '../world.ts';
import type { FaultKind } from './kind.ts';

const KILLS = 4;
/** Long enough for a worker that has just started to take something. */
const BETWEEN_MS = 500;

export const killedWorkers: FaultKind = {
  touches: () => 'commit',
  partsOf: () => [NEIGHBOUR_PART, ...WORKERS],
  async begin({ workers }) {
    for (let kill = 0; kill < KILLS; kill++) {
      const victim = workers[kill % workers.length];
      if (victim === undefined) throw new Error('no worker to kill');
      await victim.kill();
      await victim.start();
      await pause(BETWEEN_MS);
    }
    // What the dead held comes back when its lease has run out; until then the fault is not over.
    return () => pause(LEASE_SEC * 1_000);
  },
};
