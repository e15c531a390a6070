// The call-event door on Node: its own connections to DB2, the replay cache, and the order in which they end.

import { Gauge, Registry } from 'prom-client';
import { type CacheState, GuardedReplayCache } from '#core/calls/guarded_cache.ts';
import { MemoryReplayCache, type ReplayCache } from '#core/calls/replay_cache.ts';
import { CallRoutes } from '#core/calls/routes.ts';
import { createCallStore } from '#core/calls/store.ts';
import type { Inbox } from '#core/inbox/inbox.ts';
import type { Log, Metrics } from '#core/ports.ts';
import { DELIVERY_MS, type Route } from '#core/router.ts';
import { ASIDE_CONNECTIONS } from '#core/side_lane.ts';
import type { UnsignedLimit } from '#core/unsigned.ts';
import { createFindSecret, type SecretSource } from '#core/webhook/secrets.ts';
import { createDatabase, LANE_LOCK_TIMEOUT_MS } from '../db/database.ts';
import type { OwnPage } from '../metrics.ts';
import { signaturePorts } from '../webhook/hmac.ts';
import { createRedisReplayCache } from './redis_cache.ts';

export interface CallOptions {
  db2Url: string;
  /** Without one, each process remembers what it has seen itself. */
  redisUrl?: string;
  /** Secrets of sites by name. */
  secretOf: SecretSource;
  unsigned?: UnsignedLimit | undefined;
  /** Without one, calls are refused while DB2 is away. */
  inbox?: Inbox;
}

/** memory: no Redis is configured, so each server has its own cache. */
export type ReplayCacheState = CacheState | 'memory';

/** Its page is the gauge replay_cache_state. */
export interface OpenCallRoutes extends Pick<CallRoutes, 'drain'>, OwnPage {
  routes(): Route[];
  cacheState(): ReplayCacheState;
  /** Where there is a Redis: rejects while it does not answer. */
  pingRedis?: () => Promise<unknown>;
  end(): Promise<void>;
}

/** A second recording connection would only make the batches smaller; the others are for sites that are stuck. */
const LANE_CONNECTIONS = 1 + ASIDE_CONNECTIONS;
/** For looking up sites, which must not wait behind a batch. */
const REST_CONNECTIONS = 1;

const CACHE_STATES: readonly ReplayCacheState[] = ['shared', 'fallback', 'memory'];

export function openCallRoutes(options: CallOptions, metrics: Metrics, log: Log): OpenCallRoutes {
  const open = (max: number, lockTimeoutMs?: number) =>
    createDatabase({
      url: options.db2Url,
      max,
      applicationName: 'sluice-calls',
      callTimeoutMs: DELIVERY_MS,
      ...(lockTimeoutMs && { lockTimeoutMs }),
      log,
    });
  const lane = open(LANE_CONNECTIONS, LANE_LOCK_TIMEOUT_MS);
  const rest = open(REST_CONNECTIONS);
  const { cache, state, ping, close } = openCache(options.redisUrl, log);
  const callRoutes = new CallRoutes({
    store: {
      findSite: createCallStore((name, args) => rest.call(`calls.${name}`, args)).findSite,
      recordCalls: createCallStore((name, args) => lane.call(`calls.${name}`, args)).recordCalls,
    },
    cache,
    inbox: options.inbox,
    unsigned: options.unsigned,
    ...signaturePorts(
      metrics,
      log,
      createFindSecret((name, args) => rest.call(`webhook.${name}`, args)),
      options.secretOf,
    ),
  });
  return {
    routes: () => callRoutes.routes(),
    drain: () => callRoutes.drain(),
    cacheState: state,
    ...(ping && { pingRedis: ping }),
    ...createStatePage(state),
    async end() {
      close();
      await Promise.all([lane.end(), rest.end()]);
    },
  };
}

interface OpenCache {
  cache: ReplayCache;
  state(): ReplayCacheState;
  ping?: () => Promise<unknown>;
  close(): void;
}

function openCache(redisUrl: string | undefined, log: Log): OpenCache {
  const own = new MemoryReplayCache(Date.now);
  if (redisUrl === undefined) return { cache: own, state: () => 'memory', close: () => undefined };
  const redis = createRedisReplayCache(redisUrl);
  const cache = new GuardedReplayCache({ shared: redis, own, now: Date.now, log });
  return { cache, state: () => cache.state, ping: redis.ping, close: redis.close };
}

/** The gauge is 1 for the state that the cache is in, 0 for the others. Several processes may show several states. */
function createStatePage(state: () => ReplayCacheState): OwnPage {
  const registry = new Registry();
  new Gauge({
    name: 'replay_cache_state',
    help: 'Where replays of call events are recognised first: in Redis, in this process while Redis is away, or in this process alone.',
    labelNames: ['state'],
    aggregator: 'max',
    registers: [registry],
    collect() {
      for (const one of CACHE_STATES) this.set({ state: one }, one === state() ? 1 : 0);
    },
  });
  return { page: () => registry.metrics(), snapshot: () => registry.getMetricsAsJSON() };
}
