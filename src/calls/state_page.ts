// The gauge replay_cache_state: 1 for the state that the cache of call events is in, 0 for the others.

import { Gauge, Registry } from 'prom-client';
import type { CacheState } from '#core/calls/guarded_cache.ts';

/** memory: there is no Redis to share. */
export type ReplayCacheState = CacheState | 'memory';

const STATES: readonly ReplayCacheState[] = ['shared', 'fallback', 'memory'];

export function createStatePage(state: () => ReplayCacheState): () => Promise<string> {
  const registry = new Registry();
  new Gauge({
    name: 'replay_cache_state',
    help: 'Where replays of call events are recognised first: in Redis, in this process while Redis is away, or in this process alone.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const one of STATES) this.set({ state: one }, one === state() ? 1 : 0);
    },
  });
  return () => registry.metrics();
}
