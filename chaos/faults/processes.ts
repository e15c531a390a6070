// Faults of servers and workers: killed, stalled, restarted, or with a wrong clock.

import { setTimeout as pause } from 'node:timers/promises';
import { WORKERS } from '../schedule.ts';
import type { World } from '../world.ts';
import type { FaultKind, Touches } from './kind.ts';

const MS_PER_SEC = 1_000;

/**
 * A step takes milliseconds, and a worker that is stalled between two steps holds nothing. So the way to the ledger is made
 * slow first, for all workers, or the others would take every message; then each of them waits there with some in its hands.
 */
const SLOW_MS = 400;
const UNTIL_ALL_WAIT_MS = 700;
/** While a database is away, or a breaker is still open after it, no worker holds a message: the stall waits this long for one. */
const UNTIL_IT_MOVES_MS = 10_000;

const LINKS = WORKERS.map((worker) => `${worker}→db2`);

/** kill -9 of a server or a worker; the end of the fault starts it again. */
export const killProcess = (touches: Touches): FaultKind => ({
  touches: () => touches,
  partsOf: (target) => [target],
  async begin(world, { target }) {
    const victim = processNamed(world, target);
    await victim.kill();
    return () => victim.start();
  },
});

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

/** SIGTERM for every server and worker, one after another, each started again before the next: a deployment. */
export const rollingRestart: FaultKind = {
  touches: () => 'claim',
  partsOf: (_target, world) => [...world.servers, ...world.workers].map((one) => one.name),
  async begin({ servers, workers }) {
    for (const one of [...servers, ...workers]) {
      await one.stop();
      await one.start();
    }
    return undefined;
  },
};

/** kill -9 of one process of a server or a worker: its supervisor starts another. */
export const killMember: FaultKind = {
  touches: touchesOf,
  partsOf: (target) => [target],
  async begin(world, { target }, random) {
    await processNamed(world, target).killMember(random);
    return undefined;
  },
};

/** SIGHUP for a server or a worker: its processes are restarted one at a time. */
export const reload: FaultKind = {
  touches: touchesOf,
  partsOf: (target) => [target],
  async begin(world, { target }) {
    await processNamed(world, target).reload();
    return undefined;
  },
};

function touchesOf(target: string): Touches {
  return WORKERS.some((worker) => worker === target) ? 'commit' : 'claim';
}

/** A worker is restarted on a machine whose clock is wrong, and later on one whose clock is right. */
export const clockSkew: FaultKind = {
  touches: () => 'commit',
  partsOf: (target) => [nameOf(target)],
  async begin(world, { target }) {
    const victim = processNamed(world, nameOf(target));
    await victim.stop();
    await victim.start(Number(target.split(' ')[1]) * MS_PER_SEC);
    return async () => {
      await victim.stop();
      await victim.start();
    };
  },
};

/** The plan says who and by how many seconds: "worker-1 -600 s". */
function nameOf(target: string): string {
  return target.split(' ')[0] ?? '';
}

function processNamed(world: World, name: string) {
  const found = [...world.servers, ...world.workers].find((one) => one.name === name);
  if (found === undefined) throw new Error(`unknown process ${name}`);
  return found;
}
