// The replay cache in Redis, shared by all servers: SET NX PX for a claim, and what it says otherwise.

import { randomUUID } from 'node:crypto';
import { createClient } from 'redis';
import { REPLAY_TTL_MS, type ReplayCache } from '#core/calls/replay_cache.ts';

export interface RedisReplayCache extends ReplayCache {
  ping(): Promise<unknown>;
  close(): void;
}

const PREFIX = 'sluice:call:';
const DONE = 'done';
const CONNECT_TIMEOUT_MS = 2_000;
const LONGEST_PAUSE_MS = 2_000;
const PAUSE_STEP_MS = 50;
/** Commands that wait for a connection gone silent: beyond it they fail at once instead of memory growing. */
const MAX_WAITING_COMMANDS = 10_000;

/** Takes the claim back only if it is still ours: another server may have stored the call meanwhile. */
const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`;

/** Connects by itself, now and after every loss; until then each call fails, and the caller goes on without. */
export function createRedisReplayCache(url: string): RedisReplayCache {
  const claimed = `claimed:${randomUUID()}`;
  const client = createClient({
    url,
    // A command that cannot be sent now is of no use later.
    disableOfflineQueue: true,
    commandsQueueMaxLength: MAX_WAITING_COMMANDS,
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      reconnectStrategy: (retries) => Math.min(LONGEST_PAUSE_MS, PAUSE_STEP_MS * (retries + 1)),
    },
  });
  // Each caller sees its own failure; without a listener a lost connection would end the process.
  client.on('error', () => undefined);
  client.connect().catch(() => undefined);
  const lifetime = { expiration: { type: 'PX', value: REPLAY_TTL_MS } } as const;

  return {
    async claim(key) {
      const set = await client.set(PREFIX + key, claimed, { condition: 'NX', ...lifetime });
      if (set !== null) return 'claimed';
      return (await client.get(PREFIX + key)) === DONE ? 'done' : 'in_flight';
    },
    async done(key) {
      await client.set(PREFIX + key, DONE, lifetime);
    },
    async release(key) {
      await client.eval(RELEASE, { keys: [PREFIX + key], arguments: [claimed] });
    },
    ping: () => client.ping(),
    close: () => client.destroy(),
  };
}
