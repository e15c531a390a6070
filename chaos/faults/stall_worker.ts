import { setTimeout as pause } from 'node:timers/promises';
import { WORKERS } from '../schedule.ts';
import { type FaultKind, processNamed } from './kind.ts';

/**
 * A step takes milliseconds, and a worker that is stalled between two steps holds nothing. So the way to the ledger is made
 * slow first, for all workers, or the others would take every message; then each of them waits there with some in its hands.
 */
const SLOW_MS = 400;
const UNTIL_ALL_WAIT_MS = 700;
/** While a database is away, or a breaker still open after it, nobody holds anything: the stall waits for better days, a while. */
const UNTIL_IT_MOVES_MS = 10_000;

const LINKS = WORKERS.map((worker) => `${worker}→db2`);

/** SIGSTOP for longer than the leases: others take over, and then it wakes up and goes on as if nothing had been. */
export const stallWorker: FaultKind = {
  touches: () => 'commit',
  partsOf: (target) => [target, ...LINKS],
  async begin(world, { target }) {
    const victim = processNamed(world, target);
    await Promise.race([world.target.nextCall(), pause(UNTIL_IT_MOVES_MS)]);
    const links = LINKS.flatMap((name) => world.links.get(name) ?? []);
    for (const link of links) link.begin({ kind: 'delay', ms: SLOW_MS });
    await pause(UNTIL_ALL_WAIT_MS);
    victim.stall();
    for (const link of links) link.heal();
    return () => victim.goOn();
  },
};
