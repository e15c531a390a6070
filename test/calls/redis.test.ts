import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { memoryLog } from '../core/support.ts';
import { openClient } from '../server/support.ts';
import { startDatabases } from '../support/databases.ts';
import { seededRandom } from '../support/load.ts';
import { startRedis, type TestRedis } from './redis.ts';
import {
  addSites,
  type CallServer,
  callBody,
  countCalls,
  countMetrics,
  NOOP,
  post,
  SITE,
  signedRequest,
  startCallServer,
} from './support.ts';

/** SLUICE_CALL_EVENTS=20000 is the long run. */
const EVENTS = Number(process.env.SLUICE_CALL_EVENTS ?? 2_000);
const SEED = Number(process.env.SLUICE_CALL_SEED ?? Date.now() % 1_000_000);
const SENDERS = 48;
const MAX_COPIES = 3;
const POLL_MS = 10;
const DEADLINE_MS = 20_000;

/** What was made last ends first. */
function lastFirst(t: TestContext): (end: () => unknown) => void {
  const ends: (() => unknown)[] = [];
  t.after(async () => {
    for (const end of ends.reverse()) await end();
  });
  return (end) => ends.push(end);
}

async function setUp(t: TestContext, count: number) {
  const redis = await startRedis(t);
  if (redis === undefined) return undefined;
  const later = lastFirst(t);
  later(redis.stop);
  const databases = await startDatabases({ db1: false });
  later(databases.stop);
  const client = await openClient(databases.db2.url);
  later(() => client.end());
  await addSites(client);
  const metrics = countMetrics();
  const log = memoryLog();
  const servers: CallServer[] = [];
  for (let at = 0; at < count; at++) {
    const server = await startCallServer({ db2Url: databases.db2.url, redisUrl: redis.url, metrics, log });
    later(server.stop);
    servers.push(server);
  }
  return { redis, later, databases, client, servers, metrics, log };
}

/** Sends calls of its own until the server's cache is in this state. */
async function untilState(server: CallServer, state: string): Promise<number> {
  const deadline = Date.now() + DEADLINE_MS;
  let sent = 0;
  while (server.calls.cacheState() !== state) {
    assert.ok(Date.now() < deadline, `the cache never became ${state}`);
    const { status } = await post(server.url, signedRequest(callBody({ payload: { state, sent } })));
    assert.equal(status, 200);
    sent++;
    await delay(POLL_MS);
  }
  return sent;
}

test('a Redis whose port another process has taken starts as soon as the port is free', async (t) => {
  const redis = await startRedis(t);
  if (redis === undefined) return;
  t.after(redis.stop);
  await redis.kill();
  const other = createServer((asked) => asked.end('+PONG\r\n'));
  other.listen(Number(new URL(redis.url).port), '127.0.0.1');
  await once(other, 'listening');
  const started = redis.start();
  // 500 ms is enough for a helper that takes any answer on the port for Redis to resolve too early.
  assert.equal(await Promise.race([started, delay(500, 'waits')]), 'waits');
  other.close();
  await started;
  await redis.flush();
});

test('servers share a replay cache in Redis; without it they go on, and say so', async (t) => {
  const world = await setUp(t, 2);
  if (world === undefined) return;
  const { redis, servers, metrics, log, client } = world;
  const [first, second] = servers as [CallServer, CallServer];
  await untilState(first, 'shared');
  // Connecting takes a moment: the first calls may have gone without.
  const deadline = Date.now() + DEADLINE_MS;
  for (let line = 0; !metrics.counts.has(`${SITE} noop replay_cache`); line++) {
    assert.ok(Date.now() < deadline, 'the second server never asked Redis');
    const request = signedRequest(callBody({ payload: { shared: line } }));
    assert.equal((await post(first.url, request)).json.status, 'recorded');
    assert.deepEqual((await post(second.url, request)).json, NOOP);
  }
  log.lines.length = 0;
  await redis.kill();
  await untilState(first, 'fallback');
  assert.match(await first.calls.page(), /^replay_cache_state\{state="fallback"\} 1$/m);
  const during = signedRequest(callBody({ payload: { during: 'outage' } }));
  assert.equal((await post(first.url, during)).json.status, 'recorded');
  assert.deepEqual((await post(second.url, during)).json, NOOP);
  await redis.start();
  await untilState(first, 'shared');
  assert.match(await first.calls.page(), /^replay_cache_state\{state="shared"\} 1$/m);
  const told = log.lines.map(({ message }) => message).filter((message) => message.includes('replay cache'));
  const ofFirst = new Set(told);
  assert.deepEqual([...ofFirst].sort(), [
    'the replay cache is away; the database decides alone',
    'the replay cache is back',
  ]);
  const { rows } = await client.query(
    'select signature_hash from public.calls group by site_id, signature_hash having count(*) > 1',
  );
  assert.deepEqual(rows, []);
});

test('a Redis that hangs holds up no call', async (t) => {
  const world = await setUp(t, 1);
  if (world === undefined) return;
  const { redis, servers, client } = world;
  const [server] = servers as [CallServer];
  await untilState(server, 'shared');
  const before = await countCalls(client);
  redis.pause();
  const requests = Array.from({ length: 50 }, (_, line) => signedRequest(callBody({ payload: { line } })));
  for (const request of requests) {
    assert.equal((await post(server.url, request)).json.status, 'recorded');
    assert.deepEqual((await post(server.url, request)).json, NOOP);
  }
  assert.equal(server.calls.cacheState(), 'fallback');
  assert.equal(await countCalls(client), before + requests.length);
  redis.goOn();
  await untilState(server, 'shared');
});

test(`Redis killed, restarted, hung and flushed at random during ${EVENTS} events: one row each (seed ${SEED})`, async (t) => {
  const world = await setUp(t, 2);
  if (world === undefined) return;
  const { redis, databases, client, servers, metrics, later } = world;
  const pool = new pg.Pool({ connectionString: databases.db2.url, max: 4 });
  later(() => pool.end());
  const agent = new Agent({ keepAlive: true, maxSockets: SENDERS });
  later(() => agent.destroy());
  const { below: random } = seededRandom(SEED);
  const answers = { recorded: 0, noop: 0 };
  const lies: string[] = [];

  async function send(event: number): Promise<void> {
    const request = signedRequest(callBody({ payload: { event } }));
    const copies = Array.from({ length: 1 + random(MAX_COPIES) }, async () => {
      const server = servers[random(servers.length)] as CallServer;
      const { status, json, text } = await post(server.url, request, agent);
      assert.equal(status, 200, text);
      if (json.status === 'recorded') answers.recorded++;
      else if (json.status === 'noop') {
        answers.noop++;
        const sql = `select from public.calls where payload ->> 'event' = $1`;
        if ((await pool.query(sql, [String(event)])).rowCount === 0) lies.push(`event ${event}`);
      } else assert.fail(text);
    });
    await Promise.all(copies);
  }

  let next = 0;
  let isOver = false;
  const sender = async (): Promise<void> => {
    while (next < EVENTS) await send(next++);
  };
  const chaos = breakRedis(redis, random, () => isOver);
  await client.query(`create index on public.calls ((payload ->> 'event'))`);
  await Promise.all(Array.from({ length: SENDERS }, sender));
  isOver = true;
  const broken = await chaos;
  // With Redis back, the cache itself knows a duplicate again, however little it was there meanwhile.
  const [first] = servers as [CallServer];
  await untilState(first, 'shared');
  const afterwards = signedRequest(callBody({ payload: { event: EVENTS } }));
  assert.equal((await post(first.url, afterwards, agent)).json.status, 'recorded');
  assert.deepEqual((await post(first.url, afterwards, agent)).json, NOOP);

  assert.deepEqual(lies, [], 'a noop was answered for what was not stored');
  assert.equal(answers.recorded, EVENTS);
  const { rows } = await client.query(
    `select count(*)::int as rows, count(distinct payload ->> 'event')::int as events,
       count(distinct signature_hash)::int as signatures from public.calls where payload ? 'event'`,
  );
  assert.deepEqual(rows, [{ rows: EVENTS + 1, events: EVENTS + 1, signatures: EVENTS + 1 }]);
  assert.ok(broken.kill > 0 && broken.flush > 0 && broken.hang > 0, JSON.stringify(broken));
  // Both of the guards were at work, or the run says nothing about either.
  assert.ok((metrics.counts.get(`${SITE} noop replay_cache`) ?? 0) > 0);
  assert.ok((metrics.counts.get(`${SITE} noop idempotent_conflict`) ?? 0) > 0);
  t.diagnostic(`${answers.noop} duplicates; Redis: ${JSON.stringify(broken)}`);
});

/** Goes on until told, and leaves Redis running. Each kind of trouble comes at least once. */
async function breakRedis(redis: TestRedis, random: (below: number) => number, isOver: () => boolean) {
  const counts = { kill: 0, flush: 0, hang: 0 };
  const troubles: [keyof typeof counts, () => Promise<void>][] = [
    [
      'kill',
      async () => {
        await redis.kill();
        await delay(random(300));
        await redis.start();
      },
    ],
    ['flush', () => redis.flush()],
    [
      'hang',
      async () => {
        redis.pause();
        await delay(random(200));
        redis.goOn();
      },
    ],
  ];
  for (let round = 0; !isOver() || round < troubles.length; round++) {
    const at = round < troubles.length ? round : random(troubles.length);
    const [name, cause] = troubles[at] as (typeof troubles)[number];
    await delay(random(200));
    await cause();
    counts[name]++;
  }
  return counts;
}
