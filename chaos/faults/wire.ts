import type { Trouble } from '../proxy.ts';
import type { Random } from '../random.ts';
import type { FaultKind } from './kind.ts';

/** The delay of every packet, each way: some round trips take longer than a lease, none longer than a call may. */
const DELAY_MS: readonly [number, number] = [20, 800];
/** Of the replies while it lasts: high enough to hit often, low enough that somebody still gets to ask. */
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
    if (proxy === undefined) throw new Error(`there is no wire ${target}`);
    proxy.begin(TROUBLES[kind](random));
    return () => proxy.heal();
  },
});
