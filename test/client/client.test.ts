import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { inspect } from 'node:util';
import type pg from 'pg';
import {
  createRequest,
  createSluiceClient,
  type Pool,
  type PoolNews,
  type SluiceClientOptions,
  SluiceError,
} from '#client/index.ts';
import { pauseMs, retryAfterMs, sleep } from '#client/retry.ts';
import type { PoolStatus } from '#core/pool.ts';
import type { PoolNews as SentNews } from '../../src/console/pool_live.ts';
import { ADMIN_KEY, openClient, putOnSale, startTestServer, token } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { type FlakyProxy, startProxy } from './proxy.ts';

// The client's own types are those of the server: this does not compile where they differ.
const samePool = ({ challenge_difficulty, ...pool }: PoolStatus): Pool => ({
  ...pool,
  challenge: challenge_difficulty !== null,
});
const sameNews = (news: SentNews): PoolNews => news;

const DIFFICULTY = 20_000;

describe('the typed client', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let proxy: FlakyProxy;
  let db1: pg.Client;
  const pauses: number[] = [];
  const client = (more: Partial<SluiceClientOptions> = {}) =>
    createSluiceClient({
      url: proxy.url,
      random: () => 0.5,
      sleep: async (ms) => {
        pauses.push(ms);
      },
      ...more,
    });
  const claimsOf = async (user: string) =>
    (await db1.query('select count(*)::int as n from public.claims where user_id = $1', [user])).rows[0].n;

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    proxy = await startProxy(server.url);
    db1 = await openClient(databases.db1.url);
    await putOnSale(db1, 'p', 20);
    await putOnSale(db1, 'a:b@c', 1);
    await putOnSale(db1, 'tiny', 1);
    await putOnSale(db1, 'puzzle', 5, { challenge_difficulty: DIFFICULTY });
  });
  after(async () => {
    await db1?.end();
    await proxy?.close();
    await server?.stop();
    await databases?.stop();
  });

  it('sends the traceparent that it is given, with every try and with nothing else', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const sent: (string | null)[] = [];
    const watched = client({
      fetch: (url, init) => {
        sent.push(new Headers(init?.headers).get('traceparent'));
        return fetch(url, init);
      },
    });
    proxy.faults.push({ status: 503 });
    const claim = await watched.claim({ pool: 'p', userId: 'tom' }, { traceparent });
    await watched.getClaim(claim);
    await watched.claim({ pool: 'p', userId: 'tim' });
    assert.deepEqual(sent, [traceparent, traceparent, null, null]);
  });

  it('takes one slot however often requests and answers are lost, with one request id', async () => {
    pauses.length = 0;
    proxy.seen.length = 0;
    proxy.faults.push(
      'lose_request',
      'lose_answer',
      'cut_answer',
      { status: 502 },
      { status: 503, headers: { 'retry-after': '2' } },
    );
    const claim = await client().claim({ pool: 'p', userId: 'ann' });
    assert.equal(claim.user_id, 'ann');
    assert.equal(await claimsOf('ann'), 1);
    assert.equal(proxy.seen.length, 6);
    assert.equal(new Set(proxy.seen).size, 1);
    const { request_id, secret } = JSON.parse(proxy.seen[0] ?? '');
    assert.deepEqual([claim.request_id, claim.secret], [request_id, secret]);
    // Half of a cap that doubles, and never before Retry-After.
    assert.deepEqual(pauses, [100, 200, 400, 800, 3_600]);
  });

  it('takes two slots for two calls without a request, and one where the caller keeps it', async () => {
    await Promise.all([1, 2].map(() => client().claim({ pool: 'p', userId: 'ben' })));
    assert.equal(await claimsOf('ben'), 2);
    const order = { pool: 'p', userId: 'cleo', ...createRequest(), requestId: 'order-7' };
    const [first, second] = [await client().claim(order), await client().claim(order)];
    assert.deepEqual(second, { ...first, status: second.status });
    assert.equal(await claimsOf('cleo'), 1);
    // The same id with another secret is a stranger's request; so half a request would be the next slot by mistake.
    const other = await client().claim({ ...order, ...createRequest(), requestId: 'order-7' });
    assert.notEqual(other.claim_id, first.claim_id);
    const half = { pool: 'p', userId: 'cleo', requestId: 'order-7' };
    await assert.rejects(client().claim(half), TypeError);
    // The public key of the project does not prove whose request it is either.
    const anonymous = client({ token: await token({ role: 'anon' }) });
    await assert.rejects(anonymous.claim(half), TypeError);
    assert.equal(await claimsOf('cleo'), 2);
    // A token says whose request it is.
    const own = client({ token: await token({ role: 'authenticated', sub: 'cleo' }) });
    const [third, fourth] = [await own.claim(half), await own.claim(half)];
    assert.equal(third.claim_id, fourth.claim_id);
    assert.equal(await claimsOf('cleo'), 3);
  });

  it('makes secrets that are new each time and long enough', () => {
    const secrets = Array.from({ length: 100 }, () => createRequest().secret);
    assert.equal(new Set(secrets).size, 100);
    for (const secret of secrets) assert.match(secret, /^[0-9a-f]{48}$/);
  });

  it('gives up after its tries, and hands back the request with which the next call goes on', async () => {
    proxy.faults.push('lose_answer', 'lose_answer');
    const error = await client({ maxTries: 2 })
      .claim({ pool: 'p', userId: 'dan' })
      .catch((thrown: unknown) => thrown);
    assert.ok(error instanceof SluiceError);
    assert.deepEqual([error.code, error.status, error.tries, error.retryable], ['no_answer', 0, 2, true]);
    assert.ok(error.request);
    await client().claim({ pool: 'p', userId: 'dan', ...error.request });
    assert.equal(await claimsOf('dan'), 1);
    // Errors end up in logs.
    assert.ok(!`${inspect(error)}${JSON.stringify(error)}`.includes(error.request.secret));
  });

  it('does not try again what trying does not change', async () => {
    await client().claim({ pool: 'tiny', userId: 'eve' });
    proxy.seen.length = 0;
    await assert.rejects(client().claim({ pool: 'tiny', userId: 'fay' }), {
      code: 'sold_out',
      status: 409,
      tries: 1,
    });
    await assert.rejects(client().claim({ pool: 'nowhere', userId: 'fay' }), {
      code: 'unknown_pool',
      tries: 1,
    });
    await assert.rejects(client().pool('p/../tiny'), { code: 'unknown_pool' });
    await assert.rejects(client().pool('a\nb'), { code: 'not_found' });
    assert.equal(proxy.seen.length, 4);
    proxy.faults.push({ status: 500, body: '<html>' });
    await assert.rejects(client().pool('p'), { code: 'not_sluice', status: 500, retryable: false });
    // A hotel's Wi-Fi answers everything, and well.
    proxy.faults.push({ status: 200, body: '<html>' });
    await assert.rejects(client().pool('p'), { code: 'not_sluice', status: 200, retryable: false, tries: 1 });
    proxy.faults.push({ status: 503, headers: { 'retry-after': '3600' } });
    await assert.rejects(client().pool('p'), { status: 503, tries: 1 });
  });

  it('ends at once when its caller aborts, also in a pause', async () => {
    const stopping = new AbortController();
    proxy.faults.push('lose_request');
    const waiting = client({
      sleep: (_, signal) => {
        stopping.abort(new Error('enough'));
        return sleep(60_000, signal);
      },
    }).claim({ pool: 'p', userId: 'gil' }, { signal: stopping.signal });
    await assert.rejects(waiting, /enough/);
    assert.equal(await claimsOf('gil'), 0);
    await assert.rejects(client().pool('p', { signal: AbortSignal.abort(new Error('before')) }), /before/);
  });

  it('looks at claims and pools, and releases; the second release says the same', async () => {
    const claim = await client().claim({ pool: 'a:b@c', userId: 'hal' });
    const { status, ahead } = await client().getClaim(claim);
    assert.deepEqual([status, typeof ahead], ['queued', 'number']);
    const pool = { ...(await client().pool('a:b@c')), challenge_difficulty: null };
    assert.equal(samePool(pool).capacity, 1);
    // Without its secret, or with a guessed one, the claim is not found.
    const { claim_id, secret } = claim;
    const guess = { claim_id, secret: createRequest().secret };
    for (const key of [claim_id, guess, { claim_id, secret: '' }]) {
      await assert.rejects(client().release(key), { code: 'unknown_claim', status: 404, tries: 1 });
      const looking = typeof key === 'string' ? client().getClaim(key) : client().getClaim(key);
      await assert.rejects(looking, { code: 'unknown_claim', status: 404, tries: 1 });
    }
    const released = await client().release({ claim_id, secret });
    assert.equal(released.status, 'released');
    assert.deepEqual(await client().release(claim), released);
  });

  it('solves the challenge of a pool, tells how far it is, and sends each solution once', async () => {
    const { challenge } = await client().pool('puzzle');
    assert.equal(challenge, true);
    const shares: number[] = [];
    const onProgress = (share: number) => shares.push(share);
    proxy.seen.length = 0;
    const claim = await client().claim({ pool: 'puzzle', userId: 'kim' }, { onProgress });
    assert.equal(claim.user_id, 'kim');
    assert.equal(shares[0], 0);
    // Asked, fetched the challenge, asked again.
    assert.equal(proxy.seen.length, 3);
    const solution = JSON.parse(proxy.seen[2] ?? '').challenge;
    assert.equal(JSON.parse(atob(solution)).challenge.parameters.data.difficulty, DIFFICULTY);
    // A solution that was used is as good as none: the client solves the next one.
    proxy.seen.length = 0;
    await client().claim({ pool: 'puzzle', userId: 'kim', challenge: solution });
    assert.equal(proxy.seen.length, 3);
    assert.equal(await claimsOf('kim'), 2);
  });

  it('does not go on solving where the server is never content, or asks for what it cannot solve', async () => {
    const refusal = (code: string) => ({
      status: 403,
      body: JSON.stringify({ error: { code, message: '', hint: '' } }),
    });
    const other = { status: 200, body: JSON.stringify({ turnstile: { sitekey: 'x' } }) };
    const none = { status: 200, body: 'null' };
    proxy.faults.push(refusal('challenge_required'), other);
    await assert.rejects(client().claim({ pool: 'p', userId: 'lea' }), { code: 'challenge_required' });
    for (let times = 0; times < 3; times++) proxy.faults.push(refusal('challenge_used'), none);
    proxy.faults.push(refusal('challenge_used'));
    await assert.rejects(client().claim({ pool: 'p', userId: 'lea' }), { code: 'challenge_used' });
    assert.deepEqual(proxy.faults, []);
    assert.equal(await claimsOf('lea'), 0);
  });

  it('says who it is with a token', async () => {
    const bearer = await token({ role: 'authenticated', sub: 'ida' });
    const claim = await client({ url: server.url, token: bearer }).claim({ pool: 'p' });
    assert.equal(claim.user_id, 'ida');
    await assert.rejects(client({ url: server.url }).getClaim(claim.claim_id), { code: 'unknown_claim' });
    assert.equal(
      (await client({ url: server.url, token: ADMIN_KEY }).getClaim(claim.claim_id)).user_id,
      'ida',
    );
  });

  it('follows a pool until it is told to stop, and does not follow what is not there', async () => {
    const stopping = new AbortController();
    const seen: (number | null)[] = [];
    const direct = client({ url: server.url });
    for await (const news of direct.follow('tiny', { signal: stopping.signal })) {
      seen.push(sameNews(news as SentNews).available);
      if (seen.length === 1) {
        const { rows } = await db1.query(`select claim_id from public.claims where pool_id = 'tiny'`);
        await client({ url: server.url, token: ADMIN_KEY }).release(rows[0].claim_id);
      }
      if (seen.at(-1) === 1) stopping.abort();
    }
    assert.deepEqual([seen[0], seen.at(-1)], [0, 1]);
    await assert.rejects(direct.follow('nowhere').next(), { code: 'unknown_pool' });
  });

  it('follows with a fetch that is not the one of this runtime', async () => {
    // Its answers are no instances of the global Response, as those of the package undici are not.
    const own = async (...call: Parameters<typeof fetch>) => {
      const { ok, status, headers, body } = await fetch(...call);
      return { ok, status, headers, body, text: () => new Response(body).text() } as Response;
    };
    const foreign = client({ url: server.url, fetch: own });
    for await (const { capacity } of foreign.follow('tiny')) {
      assert.equal(capacity, 1);
      break;
    }
    await assert.rejects(foreign.follow('nowhere').next(), { code: 'unknown_pool', status: 404 });
  });

  it('connects again when the stream breaks', async () => {
    const events =
      'event: pool\ndata: {"status":"open","available":1,"capacity":1,"opens_at":null,"now":"x"}\n\n';
    const stream = { status: 200, headers: { 'content-type': 'text/event-stream' }, body: events };
    proxy.faults.push(stream, 'lose_request', 'say_nothing', stream);
    let count = 0;
    for await (const { available } of client({ timeoutMs: 300 }).follow('p')) {
      assert.equal(available, 1);
      count += 1;
      if (count === 2) break;
    }
  });
});

describe('pauses', () => {
  it('spread over all of a cap that doubles up to ten seconds', () => {
    assert.deepEqual(
      [1, 2, 3, 7, 20].map((tries) => pauseMs(tries, undefined, () => 1)),
      [200, 400, 800, 10_000, 10_000],
    );
    assert.equal(
      pauseMs(3, undefined, () => 0),
      0,
    );
  });

  it('read Retry-After as seconds or as a date', () => {
    assert.equal(retryAfterMs('3'), 3_000);
    assert.equal(retryAfterMs('Thu, 01 Jan 1970 00:00:10 GMT', 4_000), 6_000);
    assert.equal(retryAfterMs('Thu, 01 Jan 1970 00:00:10 GMT', 40_000), 0);
    assert.equal(retryAfterMs('soon'), undefined);
    assert.equal(retryAfterMs(null), undefined);
  });
});
