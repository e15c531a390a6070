// The call-event door on Node: its own connection to DB2, the replay cache, and the order in which they end.

import { GuardedReplayCache } from '#core/calls/guarded_cache.ts';
import { MemoryReplayCache, type ReplayCache } from '#core/calls/replay_cache.ts';
import { CallRoutes } from '#core/calls/routes.ts';
import { createCallStore } from '#core/calls/store.ts';
import type { Log, Metrics } from '#core/ports.ts';
import { DELIVERY_MS, type Route } from '#core/router.ts';
import type { SecretSource } from '#core/webhook/ports.ts';
import { createDatabase } from '../db/database.ts';
import { nodeHmac } from '../webhook/hmac.ts';
import { createRedisReplayCache } from './redis_cache.ts';
import { createStatePage, type ReplayCacheState } from './state_page.ts';

export interface CallOptions {
  db2Url: string;
  /** Without one, each process remembers what it has seen itself. */
  redisUrl?: string;
  /** Secrets of sites by name; the environment where left out. */
  secretOf?: SecretSource;
}

export interface OpenCallRoutes extends Pick<CallRoutes, 'drain'> {
  routes(): Route[];
  cacheState(): ReplayCacheState;
  /** Where there is a Redis: rejects while it does not answer. */
  pingRedis?: () => Promise<unknown>;
  /** The gauge replay_cache_state, in Prometheus' text format. */
  page(): Promise<string>;
  end(): Promise<void>;
}

/** A second recording connection would only make the batches smaller. */
const LANE_CONNECTIONS = 1;
/** For looking up sites, which must not wait behind a batch. */
const REST_CONNECTIONS = 1;

const fromEnvironment: SecretSource = (name) => process.env[name];

export function openCallRoutes(options: CallOptions, metrics: Metrics, log: Log): OpenCallRoutes {
  const open = (max: number) =>
    createDatabase({
      url: options.db2Url,
      max,
      applicationName: 'sluice-calls',
      callTimeoutMs: DELIVERY_MS,
      log,
    });
  const lane = open(LANE_CONNECTIONS);
  const rest = open(REST_CONNECTIONS);
  const { cache, state, ping, close } = openCache(options.redisUrl, log);
  const callRoutes = new CallRoutes({
    store: {
      findSite: createCallStore((name, args) => rest.call(`calls.${name}`, args)).findSite,
      recordCalls: createCallStore((name, args) => lane.call(`calls.${name}`, args)).recordCalls,
    },
    cache,
    secretOf: options.secretOf ?? fromEnvironment,
    hmac: nodeHmac,
    metrics,
    log,
    now: Date.now,
  });
  return {
    routes: () => callRoutes.routes(),
    drain: () => callRoutes.drain(),
    cacheState: state,
    ...(ping && { pingRedis: ping }),
    page: createStatePage(state),
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
