// The system on trial, as real processes: two Postgres servers, PostgREST, Redis, two servers, two workers, the webhook
// target, and a proxy of ours on every wire between them.

import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { withClient } from '../src/migrate/sql.ts';
import { LOOPBACK } from '../src/stack/ports.ts';
import { startStandIn } from '../src/stack/stripe.ts';
import { StandInClient } from '../src/stripe_stand_in/client.ts';
import { startRedis, type TestRedis } from '../test/calls/redis.ts';
import { addSites, SECRETS as CALL_SECRETS } from '../test/calls/support.ts';
import { ADMIN_KEY, JWT_SECRET, putOnSale } from '../test/server/support.ts';
import { cleanUpOnExit } from '../test/support/databases.ts';
import { startTestPostgrest, type TestPostgrest } from '../test/support/postgrest.ts';
import { addEndpoint, SECRETS as WEBHOOK_SECRETS } from '../test/webhook/world.ts';
import { HEALTHY_ENDPOINT, HEALTHY_HANDLER, HEALTHY_PER_SEC, HEALTHY_POOL } from './clients/healthy.ts';
import { HOSTILE_ENDPOINT, HOSTILE_POOLS } from './clients/hostile.ts';
import { PAID_POOLS, PAID_RULES } from './clients/paid_buyers.ts';
import { PROVIDER_ENDPOINTS } from './clients/providers.ts';
import { patch, script } from './controls/patches.ts';
import { Database } from './database.ts';
import { Disks } from './disk.ts';
import type { Pool, TargetCall } from './history.ts';
import { POWER_CUT, type RunOptions } from './options.ts';
import { Process, SERVER_READY, WORKER_READY } from './process.ts';
import { startProxy, type WireProxy } from './proxy.ts';
import { createRandom } from './random.ts';
import { LINKS, SERVERS, WORKERS } from './schedule.ts';
import { PAID_TENANT } from './tables.ts';
import { PICKY_POOL, startTarget, type Target } from './target.ts';

/** So short that a stalled or killed worker's messages are taken over while the storm is still on. */
export const LEASE_SEC = 4;
/** Claims of the pool `small` that no worker has taken by then can expire. */
const HOLD_SEC = 3;
/** A message that its target always refuses is a dead letter after this many deliveries. */
const PICKY_RETRIES = 4;
/** What a hostile hook fails for a while is carried in the end: none of its claims is to be a dead letter. */
const HOSTILE_RETRIES = 1_000;
/** Slots of a hostile pool: what all neighbours of a run claim, with room to spare. */
const HOSTILE_SLOTS_PER_SEC = 25;
/** The healthy pool must not sell out when a busy machine makes the run longer than planned. */
const HEALTHY_SPARE = 3;
/** Where Stripe tells of payments for orders. */
const PAID_ENDPOINT = PAID_TENANT.split(':')[1] ?? '';
const STRIPE_KEY = 'sk_live_of_chaos';
/** Sellers hold seats for a minute at least; a run has to see many holds end. */
const SHORT_HOLDS = 'alter table public.engine_config drop constraint payment_pool_is_complete';
/** A payment of a slow method is looked at after half a minute at first; here banks take seconds. */
const SHORT_POLLS = script(
  patch(
    'public.close_checkout(uuid, int, uuid, text, text)',
    "c_poll constant interval := '30 seconds'",
    "c_poll constant interval := '500 milliseconds'",
  ),
);
/**
 * Not the usual name: with that, the hourly comparison would ask the stand-in for the endpoints of the providers too, and record
 * its events there once more.
 */
export const PAID_KEY_NAME = 'STRIPE_PAID_API_KEY';
/** Not by `allow_secret`: the log of audits is judged by what the run's operator did. */
const ALLOW_PAID_KEY = 'insert into webhook.secret_names (name) values ($1)';
/** A tenant of its own: what it tells is judged by the stand-in's books, and not by what the providers sent. */
const ADD_PAID_ENDPOINT = `
  select webhook.add_endpoint(p_name => $1, p_provider => 'stripe', p_secret_names => '{STRIPE_WEBHOOK_SECRET}', p_mode => 'queued',
    p_settings => $2, p_actor => 'test')`;
const ENDPOINT = { lease_sec: LEASE_SEC, backoff_cap_sec: LEASE_SEC };

export type World = {
  db1: Database;
  db2: Database;
  servers: Process[];
  workers: Process[];
  links: Map<string, WireProxy>;
  /** Undefined where there is none to be had. */
  redis: TestRedis | undefined;
  target: Target;
  /** What the hostile pools call. */
  hostile: Target;
  pools: Pool[];
  /** Where clients reach the servers, by way of the proxies. */
  ports: number[];
  postgrestPort: number | undefined;
  adminKey: string;
  stripeSecret: string;
  /** The stand-in for Stripe: its switches and its books; where it listens; the key that it knows. */
  stripe: StandInClient;
  stripeUrl: string;
  stripeKey: string;
  /** What processes did without being told to: ended by themselves, or did not stop. */
  surprises: string[];
  /** What this world lacks, and why. */
  leftOut: string[];
  stop(): Promise<void>;
};

/** What clients will ask of it: about how many claims in all, for how long, and whether there are neighbours. */
export type Expected = { claims: number; seconds: number; hasNeighbours: boolean };

/** Capacities of the pools. */
function poolsFor({ claims: expected, seconds, hasNeighbours }: Expected): Pool[] {
  const hostileSlots = Math.ceil(HOSTILE_SLOTS_PER_SEC * seconds);
  const { unitPrice, graceSec, holdSec } = PAID_RULES;
  const paid = { commit: 'rpc', holdSec, payment: { unitPrice, graceSec } } as const;
  const neighbours: Pool[] = [
    { poolId: HEALTHY_POOL, capacity: Math.ceil(HEALTHY_PER_SEC * seconds * HEALTHY_SPARE), commit: 'rpc' },
    { poolId: HOSTILE_POOLS.commit, capacity: hostileSlots, commit: 'webhook' },
    { poolId: HOSTILE_POOLS.checked, capacity: hostileSlots, commit: 'rpc' },
    { poolId: HOSTILE_POOLS.locked, capacity: hostileSlots, commit: 'rpc' },
  ];
  return [
    { poolId: 'rpc', capacity: Math.ceil(expected), commit: 'rpc' },
    { poolId: 'hook', capacity: Math.ceil(expected / 4), commit: 'webhook' },
    { poolId: 'checked', capacity: Math.ceil(expected / 4), commit: 'rpc' },
    // A twelfth of those who come: it sells out early, and what is given back is sold again.
    { poolId: 'small', capacity: Math.ceil(expected / 100), commit: 'rpc', holdSec: HOLD_SEC },
    { poolId: PICKY_POOL, capacity: Math.ceil(expected / 20), commit: 'webhook', neverCommits: true },
    { poolId: PAID_POOLS.plenty, capacity: Math.ceil(expected / 5), ...paid },
    // Sold out within seconds: who pays late finds no seat.
    { poolId: PAID_POOLS.rare, capacity: Math.ceil(expected / 150), ...paid },
    ...(hasNeighbours ? neighbours : []),
  ];
}

export async function startWorld(
  options: RunOptions,
  dir: string,
  expected: Expected,
  onTargetCall: (call: Omit<TargetCall, 'at'>) => void,
): Promise<World> {
  const ends: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    return { ...(await startParts(options, dir, expected, onTargetCall, ends)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startParts(
  options: RunOptions,
  dir: string,
  expected: Expected,
  onTargetCall: (call: Omit<TargetCall, 'at'>) => void,
  ends: (() => unknown)[],
): Promise<Omit<World, 'stop'>> {
  const { seed, settings = {}, patch = {}, processes = 1 } = options;
  const more = processes > 1 ? ['--processes', String(processes)] : [];
  const surprises: string[] = [];
  const leftOut: string[] = [];
  const disks = options.faults.includes(POWER_CUT) ? await Disks.open(dir) : undefined;
  if (disks) ends.push(() => disks.close());
  const [db1, db2] = await Promise.all([
    Database.start('db1', settings.db1 ?? {}, patch.db1, disks?.add('db1')),
    Database.start('db2', settings.db2 ?? {}, patch.db2, disks?.add('db2')),
  ]);
  ends.push(() => Promise.all([db1.stop(), db2.stop()]));
  const target = await startTarget(onTargetCall);
  ends.push(() => target.close());
  const hostile = await startTarget(onTargetCall);
  ends.push(() => hostile.close());
  const pools = poolsFor(expected);
  await furnish(db1, db2, { target, hostile }, pools);
  if (expected.hasNeighbours) await furnishNeighbours(db2);

  const portOf = (to: string): number => {
    if (to === 'db1' || to === 'db2') return { db1, db2 }[to].port;
    return servers.find(({ name }) => name === to)?.port ?? 0;
  };
  const links = new Map<string, WireProxy>();
  const link = async (name: string): Promise<WireProxy> => {
    const to = name.split('→')[1] ?? '';
    const proxy = await startProxy(() => portOf(to), createRandom(seed, name));
    links.set(name, proxy);
    ends.push(() => proxy.close());
    return proxy;
  };
  for (const name of LINKS) await link(name);
  const restLink = await link('postgrest→db1');

  const redis = await startRedisIfThere(leftOut);
  if (redis) ends.push(() => redis.stop());
  const postgrest = await startRest(db1, restLink.port);
  ends.push(() => postgrest.stop());

  const logDir = join(dir, 'logs');
  mkdirSync(logDir);
  const stripeSecret = WEBHOOK_SECRETS.STRIPE_WEBHOOK_SECRET ?? '';
  const standIn = await startStandIn({
    ...{
      key: STRIPE_KEY,
      port: 0,
      journal: join(dir, 'stripe.journal'),
      logFile: join(logDir, 'stripe.log'),
    },
    webhook: {
      url: `http://${LOOPBACK}:${links.get('client→server-1')?.port}/webhooks/${PAID_ENDPOINT}`,
      secret: stripeSecret,
    },
  });
  const forgetStandIn = cleanUpOnExit(() => process.kill(standIn.pid, 'SIGKILL'));
  ends.push(async () => {
    await standIn.stop();
    forgetStandIn();
  });
  const urlVia = (from: string, database: Database): string => {
    const url = new URL(database.url);
    url.port = String(links.get(`${from}→${database.side}`)?.port);
    return url.href;
  };
  const envOf = (name: string): Record<string, string> => ({
    DB1_URL: urlVia(name, db1),
    DB2_URL: urlVia(name, db2),
    ...(redis && { SLUICE_REDIS_URL: redis.url }),
    SLUICE_ADMIN_KEY: ADMIN_KEY,
    SLUICE_JWT_SECRET: JWT_SECRET,
    ...WEBHOOK_SECRETS,
    ...CALL_SECRETS,
    STRIPE_API_URL: standIn.url,
    [PAID_KEY_NAME]: STRIPE_KEY,
    SLUICE_PUBLIC_URL: 'https://tickets.example',
  });
  const onFault = (what: string) => surprises.push(what);
  // Any port that is free, as with databases: another process may have a port chosen beforehand after a restart.
  const servers = SERVERS.map(
    (name) =>
      new Process({
        name,
        args: ['serve', ...more],
        env: { ...envOf(name), SLUICE_PORT: '0', SLUICE_HOST: LOOPBACK, SLUICE_LOG: 'warn' },
        ready: SERVER_READY,
        logDir,
        onFault,
      }),
  );
  // At level debug a worker says of each delivery how it ended, which is evidence.
  const workers = WORKERS.map(
    (name) =>
      new Process({
        name,
        args: ['work', '--lease', String(LEASE_SEC), ...more],
        env: { ...envOf(name), SLUICE_LOG: 'debug' },
        ready: WORKER_READY,
        logDir,
        onFault,
      }),
  );
  const all = [...servers, ...workers];
  const forget = cleanUpOnExit(() => {
    for (const one of all) one.killNow();
  });
  ends.push(async () => {
    await Promise.all(all.map((one) => one.kill()));
    forget();
  });
  await Promise.all(all.map((one) => one.start()));
  disks?.sync();

  return {
    db1,
    db2,
    servers,
    workers,
    links,
    redis,
    target,
    hostile,
    pools,
    ports: SERVERS.map((server) => links.get(`client→${server}`)?.port ?? 0),
    postgrestPort: Number(new URL(postgrest.url).port),
    adminKey: ADMIN_KEY,
    stripeSecret,
    stripe: new StandInClient(standIn.url, STRIPE_KEY),
    stripeUrl: standIn.url,
    stripeKey: STRIPE_KEY,
    surprises,
    leftOut,
  };
}

async function furnish(
  db1: Database,
  db2: Database,
  { target, hostile }: Pick<World, 'target' | 'hostile'>,
  pools: readonly Pool[],
): Promise<void> {
  const isHostile = (poolId: string): boolean => Object.values<string>(HOSTILE_POOLS).includes(poolId);
  await withClient(db1.url, async (client) => {
    for (const { host } of [target, hostile])
      await client.query('insert into intake.hook_allowed_hosts (host) values ($1) on conflict do nothing', [
        host,
      ]);
    await client.query(SHORT_HOLDS);
    await client.query(SHORT_POLLS);
    for (const { poolId, capacity, commit, holdSec, payment } of pools) {
      const { commitUrl, validateUrl } = isHostile(poolId) ? hostile : target;
      await putOnSale(client, poolId, capacity, {
        visibility_timeout_sec: 1,
        ...(commit === 'webhook' && { commit_webhook_url: commitUrl }),
        ...((poolId === 'checked' || poolId === HOSTILE_POOLS.checked) && {
          validation_webhook_url: validateUrl,
        }),
        ...(poolId === PICKY_POOL && { max_retries: PICKY_RETRIES }),
        ...(isHostile(poolId) && { max_retries: HOSTILE_RETRIES }),
        ...(holdSec !== undefined && { hold_sec: holdSec }),
        ...(payment !== undefined && {
          ...{ confirm_by: 'payment', price: payment.unitPrice, currency: PAID_RULES.currency },
          ...{ payment_tenant: PAID_TENANT, max_quantity: PAID_RULES.maxQuantity },
          expire_grace_sec: payment.graceSec,
        }),
      });
    }
  });
  await withClient(db2.url, async (client) => {
    for (const [name, { mode, on_outage }] of Object.entries(PROVIDER_ENDPOINTS))
      await addEndpoint(client, name, 'stripe', mode, { ...ENDPOINT, on_outage });
    await client.query(ALLOW_PAID_KEY, [PAID_KEY_NAME]);
    await client.query(ADD_PAID_ENDPOINT, [PAID_ENDPOINT, { ...ENDPOINT, api_key_name: PAID_KEY_NAME }]);
    await addSites(client);
  });
}

async function furnishNeighbours(db2: Database): Promise<void> {
  await withClient(db2.url, async (client) => {
    for (const name of [HEALTHY_ENDPOINT, HOSTILE_ENDPOINT])
      await addEndpoint(client, name, 'stripe', 'queued', ENDPOINT);
    await client.query(HEALTHY_HANDLER);
  });
}

/** The test's own Redis wants a test to skip where there is none; here the run goes on without and says so. */
async function startRedisIfThere(leftOut: string[]): Promise<TestRedis | undefined> {
  const instead = { skip: (why: string) => leftOut.push(`Redis: ${why}`) };
  return startRedis(instead as unknown as TestContext);
}

function startRest(db1: Database, port: number): Promise<TestPostgrest> {
  const url = new URL(db1.authenticatorUrl);
  url.port = String(port);
  return startTestPostgrest({ authenticatorUrl: url.href } as Parameters<typeof startTestPostgrest>[0]);
}

/** A folder that the Postgres user can look into, for journals and logs. */
export function openDir(dir: string): void {
  chmodSync(dir, 0o755);
  mkdirSync(join(dir, 'journal'));
}
