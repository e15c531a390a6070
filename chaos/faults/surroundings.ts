// Faults around the processes: the wires between them, Redis, and the addresses that pools call.

import type { Trouble } from '../proxy.ts';
import type { Random } from '../random.ts';
import type { Mood } from '../target.ts';
import type { FaultKind } from './kind.ts';

/** The delay of every packet, each way: some round trips take longer than a lease, none longer than a call may. */
const DELAY_MS: readonly [number, number] = [20, 800];
/** Of the replies while it lasts: high enough to hit often, low enough that some requests still get through. */
const CUT_PROBABILITY = 0.2;

const TROUBLES: Record<Trouble['kind'], (random: Random) => Trouble> = {
  delay: (random) => ({ kind: 'delay', ms: random.between(...DELAY_MS) }),
  cut: () => ({ kind: 'cut' }),
  'half-open': (random) => ({ kind: 'half-open', swallows: random.pick(['requests', 'replies']) }),
  'cut-after-request': () => ({ kind: 'cut-after-request', probability: CUT_PROBABILITY }),
};

/** What happens to one wire between two processes. */
export const wire = (kind: Trouble['kind']): FaultKind => ({
  touches(target) {
    if (target.startsWith('worker')) return 'commit';
    return target.endsWith('db2') ? 'event' : 'claim';
  },
  partsOf: (target) => [target],
  async begin(world, { target }, random) {
    const proxy = world.links.get(target);
    if (proxy === undefined) throw new Error(`unknown wire ${target}`);
    proxy.begin(TROUBLES[kind](random));
    return () => proxy.heal();
  },
});

const ofRedis: Pick<FaultKind, 'touches' | 'partsOf'> = { touches: () => 'call', partsOf: () => ['redis'] };

/** The replay cache forgets everything at once. */
export const flushRedis: FaultKind = {
  ...ofRedis,
  async begin({ redis }) {
    await redis?.flush();
    return undefined;
  },
};

/** kill -9 of Redis; it comes back empty. */
export const killRedis: FaultKind = {
  ...ofRedis,
  async begin({ redis }) {
    await redis?.kill();
    return () => redis?.start();
  },
};

/** The pools' webhooks misbehave: 200 and 500 by turns, silence, a reset, a redirect. */
export const targetErrors: FaultKind = {
  touches: () => 'commit',
  partsOf: () => ['target'],
  async begin({ target }, plan) {
    target.begin(plan.target as Mood);
    return () => target.heal();
  },
};
