// The door for call events: what it says, what it counts, and what it asks of its store and cache.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { afterEach, describe, it, mock } from 'node:test';
import type { Claim, ReplayCache } from '#core/calls/replay_cache.ts';
import { CallRoutes } from '#core/calls/routes.ts';
import type { Call, CallSite, RecordedCall } from '#core/calls/store.ts';
import { Router } from '#core/router.ts';
import { SECRET_FAULTS } from '#core/webhook/secrets.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { memoryLog } from './support.ts';

const NOW_SEC = 1_771_927_200;
const SECRETS: Record<string, string> = {
  NEW: 'new-secret-of-the-site',
  OLD: 'old-secret-of-the-site',
  SHORT: 'fifteen letters',
  FORBIDDEN: 'a-variable-that-is-no-secret',
  EMPTY: '',
};
const BODY = '{"kind":"ring","occurred_at":"2026-02-24T10:00:00Z","payload":{"line":7}}';
const coded = (code: string) => Object.assign(new Error(`refused with ${code}`), { code });

const siteOf = (change: Partial<CallSite> = {}): CallSite => ({
  site_id: 'site-1',
  secret_names: ['NEW', 'OLD'],
  require_signature: true,
  kinds: null,
  is_active: true,
  on_outage: 'refuse' as const,
  created_at: '',
  ...change,
});

function open(change: Partial<CallSite> = {}) {
  const world = {
    nowMs: NOW_SEC * 1_000 + 999,
    asked: [] as string[],
    batches: [] as Call[][],
    cached: [] as string[],
    counts: [] as string[],
    claim: 'claimed' as Claim,
    outcome: 'recorded' as RecordedCall['outcome'],
    record: undefined as ((calls: readonly Call[]) => Promise<RecordedCall[]>) | undefined,
  };
  const log = memoryLog();
  const cache: ReplayCache = {
    claim: (key) => {
      world.cached.push(`claim ${key}`);
      return world.claim;
    },
    done: (key) => void world.cached.push(`done ${key}`),
    release: (key) => void world.cached.push(`release ${key}`),
  };
  const calls = new CallRoutes({
    store: {
      findSite: async (siteId) => {
        world.asked.push(siteId);
        return siteId === 'site-1' ? siteOf(change) : undefined;
      },
      recordCalls: async (batch) => {
        world.batches.push([...batch]);
        if (world.record !== undefined) return world.record(batch);
        return batch.map((_, index) => ({ id: `row ${index}`, outcome: world.outcome }));
      },
    },
    cache,
    secretOf: (name) => SECRETS[name],
    findSecret: async (name) => ({ is_allowed: name !== 'FORBIDDEN', value: null }),
    hmac: nodeHmac,
    metrics: {
      count: (name, { site, result, reason }) =>
        void world.counts.push([name, site, result, reason].join(' ')),
      observe: () => undefined,
    },
    log,
    now: () => world.nowMs,
  });
  const door = new Router(calls.routes(), log);
  const ask = async (headers: Record<string, string | string[] | undefined>, body: string) => {
    const request = {
      method: 'POST',
      path: '/call-events',
      headers,
      body: Buffer.from(body),
      requestId: 'r',
    };
    const { status, body: text } = await door.handle(door.find('POST', '/call-events'), request);
    const json = JSON.parse(String(text));
    return { status, json, code: json.error?.code as string | undefined, hint: json.error?.hint as string };
  };
  const send = (
    given: Record<string, string | string[] | undefined> = {},
    body = BODY,
    { secret = SECRETS.NEW ?? '', site = 'site-1', timestamp = String(NOW_SEC) } = {},
  ) => {
    const signature = createHmac('sha256', secret).update(`${site}.${timestamp}.${body}`).digest('hex');
    const signed = { 'x-ops-site': site, 'x-ops-timestamp': timestamp, 'x-ops-signature': signature };
    return ask({ 'content-type': 'application/json', ...signed, ...given }, body);
  };
  const key = () => world.cached[0]?.replace('claim ', '') ?? '';
  return { world, log, calls, ask, send, key };
}

describe('a call event', () => {
  it('is stored with the hash of its signature, counted, and told its id', async () => {
    const { world, send, key } = open();
    const { status, json } = await send();
    assert.deepEqual([status, json], [200, { status: 'recorded', id: 'row 0' }]);
    const [[call] = []] = world.batches;
    const { signatureHash, ...rest } = call as Call;
    assert.deepEqual(rest, {
      siteId: 'site-1',
      eventId: null,
      kind: 'ring',
      payload: '{"line":7}',
      occurredAt: '2026-02-24T10:00:00Z',
    });
    assert.match(signatureHash ?? '', /^[0-9a-f]{64}$/);
    assert.equal(key(), `site-1:${signatureHash}`);
    assert.deepEqual(world.cached, [`claim ${key()}`, `done ${key()}`]);
    assert.deepEqual(world.counts, ['call_events_total site-1 recorded ']);
  });

  it('is taken under any of its site’s secrets', async () => {
    assert.equal((await open().send({}, BODY, { secret: SECRETS.OLD ?? '' })).status, 200);
    assert.equal((await open().send({}, BODY, { secret: 'other' })).status, 401);
  });

  it('that the cache knows is a noop, and no question', async () => {
    const { world, send, key } = open();
    world.claim = 'done';
    assert.deepEqual((await send()).json, { status: 'noop', reason: 'idempotent_conflict' });
    assert.deepEqual([world.batches, world.cached], [[], [`claim ${key()}`]]);
    assert.deepEqual(world.counts, ['call_events_total site-1 noop replay_cache']);
  });

  it('that the database knows is a noop, which the cache learns', async () => {
    const { world, send, key } = open();
    world.outcome = 'duplicate';
    assert.deepEqual((await send()).json, { status: 'noop', reason: 'idempotent_conflict' });
    assert.deepEqual(world.cached, [`claim ${key()}`, `done ${key()}`]);
    assert.deepEqual(world.counts, ['call_events_total site-1 noop idempotent_conflict']);
  });

  for (const [claim, released] of [
    ['claimed', 1],
    ['in_flight', 0],
  ] as const) {
    it(`with another content under its id is a conflict, and ${claim} is given up ${released} times`, async () => {
      const { world, send, key } = open();
      Object.assign(world, { claim, outcome: 'event_conflict' });
      const { status, code } = await send();
      assert.deepEqual([status, code], [409, 'event_conflict']);
      assert.deepEqual(world.cached.slice(1), released === 1 ? [`release ${key()}`] : []);
      assert.deepEqual(world.counts, ['call_events_total site-1 refused event_conflict']);
    });

    it(`that could not be stored does not count as a replay later, and ${claim} is given up ${released} times`, async () => {
      const { world, send, key } = open();
      world.claim = claim;
      world.record = () => Promise.reject(coded('08006'));
      const { status, code } = await send();
      assert.deepEqual([status, code], [503, 'database_unavailable']);
      assert.deepEqual(world.cached.slice(1), released === 1 ? [`release ${key()}`] : []);
      assert.deepEqual(world.counts, ['call_events_total site-1 failed database_unavailable']);
    });
  }

  it('of a kind that its site does not send is refused with those it does', async () => {
    const { world, send } = open({ kinds: ['hangup', 'hold'] });
    const { status, hint } = await send();
    assert.deepEqual([status, hint], [422, 'kind must be one of hangup, hold.']);
    assert.deepEqual([world.batches, world.counts], [[], ['call_events_total site-1 refused invalid_input']]);
    assert.equal((await open({ kinds: ['hangup', 'ring'] }).send()).status, 200);
  });

  it('that spoils its batch fails alone', async () => {
    const { world, send } = open();
    world.record = async (batch) => {
      if (batch.some(({ kind }) => kind === 'bad')) throw coded('22P05');
      return batch.map(() => ({ id: 'row', outcome: 'recorded' }));
    };
    const bad = BODY.replace('ring', 'bad');
    const answers = await Promise.all([send(), send({}, bad), send()]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 500, 200],
    );
  });

  it('is one of a batch of at most 4 MB', async () => {
    const { world, send } = open();
    const large = BODY.replace('{"line":7}', `{"x":"${'x'.repeat(60_000)}"}`);
    await Promise.all(Array.from({ length: 80 }, () => send({}, large)));
    const largest = Math.max(
      ...world.batches.map((batch) => batch.reduce((sum, { payload }) => sum + payload.length, 0)),
    );
    assert.ok(largest <= 4 * 1024 * 1024, String(largest));
    assert.ok(largest > 3 * 1024 * 1024, String(largest));
  });
});

describe('a call event that proves nothing', () => {
  const HINTS: [
    what: string,
    headers: Record<string, string | string[] | undefined>,
    hint: string,
    reason: string,
  ][] = [
    ['no signature', { 'x-ops-signature': undefined }, 'Send x-ops-signature, once.', 'missing_signature'],
    ['two signatures', { 'x-ops-signature': ['a', 'b'] }, 'Send x-ops-signature, once.', 'missing_signature'],
    [
      'a signature in capitals',
      { 'x-ops-signature': 'A'.repeat(64) },
      'x-ops-signature is 64 lower-case hex characters, once.',
      'malformed_signature',
    ],
    [
      'no time',
      { 'x-ops-timestamp': undefined },
      'x-ops-timestamp is the time in whole seconds, once.',
      'malformed_timestamp',
    ],
    [
      'two times',
      { 'x-ops-timestamp': ['1771927200', '1771927200'] },
      'x-ops-timestamp is the time in whole seconds, once.',
      'malformed_timestamp',
    ],
    [
      'an old time',
      { 'x-ops-timestamp': '1771926899' },
      'x-ops-timestamp is too far from now: compare the clocks.',
      'stale',
    ],
    [
      'another’s signature',
      { 'x-ops-signature': 'a'.repeat(64) },
      'Compare the secret on both sides.',
      'bad_signature',
    ],
  ];
  for (const [what, headers, hint, reason] of HINTS)
    it(`with ${what} is told: ${hint}`, async () => {
      const { world, send } = open();
      const answer = await send(headers);
      assert.deepEqual([answer.status, answer.code, answer.hint], [401, 'bad_signature', hint]);
      assert.deepEqual([world.batches, world.counts], [[], [`call_events_total site-1 refused ${reason}`]]);
    });

  it('is as old as whole seconds say', async () => {
    assert.equal((await open().send({}, BODY, { timestamp: '1771926900' })).status, 200);
  });

  for (const [what, site] of [
    ['is not there', 'site-2'],
    ['cannot be one', 'site 1'],
    ['is longer than any', 'x'.repeat(201)],
    ['has more behind it', 'site-1\n'],
  ] as const)
    it(`of a site that ${what} is refused as with a bad signature, and counted as unknown`, async () => {
      const { world, send } = open();
      const answer = await send({}, BODY, { site });
      assert.deepEqual([answer.status, answer.hint], [401, 'Compare the secret on both sides.']);
      assert.deepEqual(world.asked, site === 'site-2' ? ['site-2'] : []);
      assert.deepEqual(world.counts, ['call_events_total unknown refused unknown_site']);
    });

  it('of a site that is switched off, or of none, is refused', async () => {
    assert.equal((await open({ is_active: false }).send()).status, 401);
    const { world, send } = open();
    assert.equal((await send({ 'x-ops-site': undefined })).status, 401);
    assert.equal((await send({ 'x-ops-site': ['site-1', 'site-1'] })).status, 401);
    assert.deepEqual(world.asked, []);
  });

  it('of a site whose secrets are not set is refused, and the log names each', async () => {
    const { world, log, send } = open({ secret_names: ['NONE', 'EMPTY', 'SHORT', 'FORBIDDEN'] });
    assert.equal((await send()).hint, 'Compare the secret on both sides.');
    const told = (secret: string, fault: string) => ({
      level: 'error',
      message: 'a secret cannot be used',
      fields: { site_id: 'site-1', secret, fault },
    });
    assert.deepEqual(log.lines, [
      told('NONE', 'is not set'),
      told('EMPTY', 'is not set'),
      told('SHORT', 'is too short to be a secret'),
      told('FORBIDDEN', SECRET_FAULTS.not_allowed),
    ]);
    assert.deepEqual(world.counts, ['call_events_total site-1 refused no_secret']);
    const stale = open({ secret_names: [] });
    await stale.send({ 'x-ops-timestamp': '1771926899' });
    assert.deepEqual([stale.log.lines, stale.world.counts], [[], ['call_events_total site-1 refused stale']]);
  });

  it('is taken unsigned from a site that need not sign, past the cache; a signature it has must be good', async () => {
    const { world, send } = open({ require_signature: false });
    assert.equal((await send({ 'x-ops-signature': undefined })).status, 200);
    assert.deepEqual([world.batches[0]?.[0]?.signatureHash, world.cached], [null, []]);
    assert.equal((await send({ 'x-ops-signature': 'a'.repeat(64) })).status, 401);
    world.outcome = 'duplicate';
    assert.equal((await send({ 'x-ops-signature': undefined })).json.status, 'noop');
  });

  for (const type of [
    undefined,
    'text/plain',
    'xapplication/json',
    'application/jsonx',
    'application/json; charset=latin1',
  ])
    it(`and comes as ${type} is not read at all`, async () => {
      const { world, send } = open();
      assert.equal((await send({ 'content-type': type })).status, 415);
      assert.deepEqual(
        [world.asked, world.counts],
        [[], ['call_events_total unknown refused unsupported_media_type']],
      );
    });

  it('and comes packed is never inflated', async () => {
    assert.equal((await open().send({ 'content-encoding': 'gzip' })).status, 415);
    for (const type of ['application/json;charset=utf-8', 'Application/JSON ; charset="utf-8" '])
      assert.equal((await open().send({ 'content-type': type })).status, 200, type);
  });
});

describe('the door for call events', () => {
  afterEach(() => mock.timers.reset());

  it('takes POST with bodies of 64 KB, where it is told to stand', () => {
    const { calls } = open();
    const spelled = (path?: string) =>
      calls.routes(path).map(({ method, path: at, maxBodyBytes }) => [method, at, maxBodyBytes]);
    assert.deepEqual(spelled(), [['POST', '/call-events', 65_536]]);
    assert.deepEqual(spelled('/x'), [['POST', '/x', 65_536]]);
  });

  it('takes nothing new once it is drained', async () => {
    const { send, calls } = open();
    await send();
    await calls.drain();
    const { status, code } = await send();
    assert.deepEqual([status, code], [503, 'shutting_down']);
  });

  it('waits ten seconds for its database, then says so and counts it', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { world, send } = open();
    world.record = () => new Promise<never>(() => undefined);
    const answer = send();
    let isAnswered = false;
    void answer.then(() => {
      isAnswered = true;
    });
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    mock.timers.tick(9_999);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isAnswered, false);
    mock.timers.tick(1);
    assert.equal((await answer).code, 'database_unavailable');
    assert.deepEqual(world.counts, ['call_events_total site-1 failed database_unavailable']);
  });
});
