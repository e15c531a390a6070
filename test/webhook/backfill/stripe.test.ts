// `sluice webhooks backfill` against a stand-in for Stripe: what is missing is recorded once, whatever happens on the way.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { stretchOf } from '#core/webhook/backfill/source.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import { createDatabase } from '../../../src/db/database.ts';
import { createLog } from '../../../src/log.ts';
import type { SentEvent } from '../../../src/stripe_stand_in/books.ts';
import { RATE_LIMITED, SERVER_ERROR } from '../../../src/stripe_stand_in/refusal.ts';
import { backfill as fill, openSource } from '../../../src/webhook/backfill.ts';
import { secretsOf } from '../../../src/webhook/secret_users.ts';
import { runHere } from '../../cli/support.ts';
import { SECRETS, WebhookWorld } from '../world.ts';
import {
  backfill,
  deliveryOf,
  envFor,
  type Providers,
  STRIPE_KEY,
  startProviders,
  stripeEvent,
} from './support.ts';

describe('backfill from Stripe', () => {
  let world: WebhookWorld;
  let providers: Providers;
  let env: Record<string, string>;
  let round = 0;
  /** Events of one test, so that no other test's are counted: each asks for a stretch of its own. */
  let from: number;
  before(async () => {
    world = await WebhookWorld.start();
    providers = await startProviders();
    env = envFor(providers, world.databases.db2.url);
    await world.addEndpoint('stripe', 'stripe', 'queued', { accounts: ['acct_connected'] });
    await world.addEndpoint('inline', 'stripe', 'inline', { lease_sec: 3_600 });
  });
  after(async () => {
    await providers?.stop();
    await world?.stop();
  });
  beforeEach(() => {
    from = Math.floor(Date.now() / 1_000) - 20 * 24 * 3_600 + ++round * 3_600;
    providers.stripe.server.requests.length = 0;
  });

  const send = (count: number, change: Parameters<typeof stripeEvent>[1] = {}): SentEvent[] => {
    const events = Array.from({ length: count }, (_, at) =>
      stripeEvent(`evt_${round}_${change.account ?? 'own'}_${at}`, {
        created: from + at,
        ...change,
        object: { metadata: { user_id: `user_${round}` }, ...change.object },
      }),
    );
    for (const event of events) providers.stripe.send(event);
    return events;
  };
  const time = (sec: number) => new Date(sec * 1_000).toISOString().replace(/\.\d+/, '');
  const stretch = () => ['--since', time(from), '--until', time(from + 3_600)];
  const run = (...words: string[]) => backfill(env, 'stripe', ...stretch(), ...words);
  const recorded = () =>
    world.rows<{ event_id: string; backfilled: boolean; status: string }>(
      `select event_id, backfilled, status::text from public.webhook_events where event_id like $1 order by occurred_at`,
      [`evt_${round}_%`],
    );
  const alarms = async () => (await world.rows(`select from public.webhook_alarms`)).length;

  it('records what is missing, page by page, once, and what it is worth is credited once', async () => {
    const events = send(250);
    for (const event of events.slice(0, 100)) await world.send('stripe', 'stripe', deliveryOf(event));
    const first = await run();
    assert.deepEqual([first.code, first.counts], [0, { asked: 250, known: 100, new: 150, skipped: 0 }]);
    const second = await run();
    assert.deepEqual(second.counts, { asked: 250, known: 250, new: 0, skipped: 0 });
    await world.process();
    const rows = await recorded();
    assert.equal(rows.length, 250);
    assert.equal(rows.filter(({ backfilled }) => backfilled).length, 150);
    assert.deepEqual(new Set(rows.map(({ status }) => status)), new Set(['success']));
    assert.deepEqual(await world.credited(`user_${round}`), { rows: 250, sum: 25_000 });
    assert.equal(await alarms(), 0);
  });

  it('asks for undelivered events first, and for none of them twice', async () => {
    const events = send(3);
    providers.stripe.markDelivered(events[1]?.id ?? '');
    assert.deepEqual((await run()).counts, { asked: 3, known: 0, new: 3, skipped: 0 });
    const asked = providers.stripe.server.requests.filter(({ headers }) => !headers['stripe-account']);
    assert.deepEqual(
      asked.map(({ url }) => url.searchParams.get('delivery_success')),
      ['false', null],
    );
  });

  it('makes a later delivery of the same event a duplicate, other bytes or not', async () => {
    const [event] = send(1);
    assert.ok(event);
    await run();
    const answer = await world.send('stripe', 'stripe', deliveryOf({ ...event, api_version: '2024-06-20' }));
    assert.deepEqual([answer.status, answer.json.status], [200, 'duplicate']);
    await world.process();
    assert.deepEqual(await world.credited(`user_${round}`), { rows: 1, sum: 100 });
    assert.equal(await alarms(), 0);
  });

  it('keeps every digit of what Stripe sends', async () => {
    const [event] = send(1);
    assert.ok(event);
    const big = '9007199254740993123';
    const text = JSON.stringify({ ...event, object: 'event', big: 'BIG' }).replace('"BIG"', big);
    const body = `{"object":"list","has_more":false,"url":"/v1/events","data":[${text}]}`;
    providers.stripe.server.faults.push({ status: 200, body });
    await run();
    const [row] = await world.rows(
      `select payload ->> 'big' as big from public.webhook_events where event_id = $1`,
      [event.id],
    );
    assert.equal(row?.big, big);
  });

  it('waits out a rate limit, server errors and connections that are cut in the middle', async () => {
    send(150);
    providers.stripe.server.faults.push(RATE_LIMITED, undefined, SERVER_ERROR, 'cut', 'gone', RATE_LIMITED);
    assert.deepEqual((await run()).counts, { asked: 150, known: 0, new: 150, skipped: 0 });
    assert.equal((await recorded()).length, 150);
  });

  it('tells a wrong key and a missing right apart, and never shows the key', async () => {
    send(1);
    for (const [key, hint] of [
      ['rk_live_unknown_0123456789', /HTTP 401: Invalid API Key.*\n.*STRIPE_API_KEY/],
      ['rk_live_nothing_0123456789', /HTTP 403: .*rak_event_read.*\n.*read events/],
    ] as const) {
      const { code, stdout, stderr } = await backfill(
        { ...env, STRIPE_API_KEY: key },
        'stripe',
        ...stretch(),
      );
      assert.equal(code, 1);
      assert.match(stderr, hint);
      assert.equal(`${stdout}${stderr}`.includes(key), false);
    }
    const unset = await backfill({ ...env, STRIPE_API_KEY: '' }, 'stripe', ...stretch());
    assert.match(unset.stderr, /STRIPE_API_KEY is not set/);
    const test = await backfill({ ...env, STRIPE_API_KEY: 'rk_test_0123456789abc' }, 'stripe', ...stretch());
    assert.match(test.stderr, /is a test key, and the endpoint stripe takes live events/);
    const other = await backfill(
      { ...env, STRIPE_API_KEY: SECRETS.TWILIO_AUTH_TOKEN ?? '' },
      'stripe',
      ...stretch(),
    );
    assert.match(other.stderr, /STRIPE_API_KEY is not a key of Stripe/);
    const open = await backfill({ ...env, STRIPE_API_URL: 'http://api.example.com' }, 'stripe', ...stretch());
    assert.match(open.stderr, /STRIPE_API_URL is not an https address/);
    assert.equal(providers.stripe.server.requests.length, 2);
    assert.deepEqual(await recorded(), []);
  });

  it('asks for connected accounts that the endpoint names, and keeps whose events they are', async () => {
    send(2, { account: 'acct_connected' });
    send(1);
    assert.deepEqual((await run()).counts, { asked: 3, known: 0, new: 3, skipped: 0 });
    const [row] = await world.rows(
      `select payload ->> 'account' as account from public.webhook_events where event_id = $1`,
      [`evt_${round}_acct_connected_0`],
    );
    assert.equal(row?.account, 'acct_connected');
    await world.addEndpoint('foreign', 'stripe', 'queued', { accounts: ['acct_other'] });
    const { code, stderr } = await backfill(env, 'foreign', ...stretch());
    assert.equal(code, 1);
    assert.match(stderr, /HTTP 403: .*acct_other/);
  });

  it('records an event that is not for the endpoint as skipped', async () => {
    send(1, { livemode: false });
    assert.deepEqual((await run()).counts, { asked: 1, known: 0, new: 0, skipped: 1 });
    assert.equal((await recorded())[0]?.status, 'skipped');
  });

  it('refuses what Stripe does not have any more, a stretch without a length, and unknown endpoints', async () => {
    for (const [words, code, expected] of [
      [['stripe', '--since', '2020-01-01'], 2, /keeps its events for 30 days.*\n.*earliest/],
      [['stripe', '--since', hourLater()], 2, /--since is not before --until/],
      [['missing'], 1, /unknown endpoint missing/],
    ] as const) {
      const [endpoint, ...rest] = words;
      const answer = await backfill(env, endpoint, ...rest);
      assert.equal(answer.code, code);
      assert.match(answer.stderr, expected);
    }
    await world.addEndpoint('daily', 'daily', 'queued');
    assert.match((await backfill(env, 'daily')).stderr, /daily cannot be asked what it sent/);
    const other = `select webhook.add_endpoint('second', 'stripe', '{STRIPE_WEBHOOK_SECRET}', p_actor => 'test')`;
    await world.rows(other);
    assert.match((await backfill(env, 'second')).stderr, /the endpoint second names no key/);
    assert.equal(providers.stripe.server.requests.length, 0);
  });

  it('in a dry run counts and changes nothing', async () => {
    send(2);
    const before = await world.rows(`select from audit.audit_logs where action = 'webhook_backfill'`);
    assert.deepEqual((await run('--dry-run')).counts, { asked: 2, known: 0, new: 2, skipped: 0 });
    assert.deepEqual(await recorded(), []);
    await run('--reason', 'outage');
    const audited = await world.rows(
      `select actor, reason from audit.audit_logs where action = 'webhook_backfill' order by id`,
    );
    assert.deepEqual(audited.slice(before.length), [{ actor: 'owner (ann)', reason: 'outage' }]);
    assert.deepEqual((await run('--dry-run')).counts, { asked: 2, known: 2, new: 0, skipped: 0 });
  });

  it('of an inline endpoint is taken by a worker at once', async () => {
    send(3);
    assert.deepEqual((await backfill(env, 'inline', ...stretch())).counts, {
      asked: 3,
      known: 0,
      new: 3,
      skipped: 0,
    });
    await world.process();
    assert.deepEqual(await world.credited(`user_${round}`), { rows: 3, sum: 300 });
  });

  it('by two at once, while the same events are delivered, records and credits each once', async () => {
    const events = send(220);
    const db2 = createDatabase({
      url: env.DB2_URL ?? '',
      max: 4,
      applicationName: 'test',
      log: createLog('silent'),
    });
    try {
      const endpoint = await createOperatorStore((name, args) =>
        db2.call(`webhook.${name}`, args),
      ).findEndpoint('stripe');
      assert.ok(endpoint);
      const asking = { urls: env, log: createLog('silent'), signal: new AbortController().signal };
      const secrets = secretsOf(db2, (name) => env[name]);
      const one = async () => {
        const open = await openSource(endpoint, { ...asking, secrets });
        return fill(open, endpoint, stretchOf(from * 1_000, (from + 3_600) * 1_000), {
          db2,
          log: createLog('silent'),
        });
      };
      const deliveries = events.map((event) => () => world.send('stripe', 'stripe', deliveryOf(event)));
      const deliver = async () => {
        for (let at = 0; at < deliveries.length; at += 20)
          await Promise.all(deliveries.slice(at, at + 20).map((go) => go()));
      };
      const [a, b] = await Promise.all([one(), one(), deliver()]);
      assert.deepEqual([a.asked, a.known + a.new], [220, 220]);
      assert.deepEqual([b.asked, b.known + b.new], [220, 220]);
    } finally {
      await db2.end();
    }
    await world.process();
    assert.equal((await recorded()).length, 220);
    assert.deepEqual(await world.credited(`user_${round}`), { rows: 220, sum: 22_000 });
    assert.equal(await alarms(), 0);
  });

  it('shows in list and show that it was backfilled', async () => {
    const [event] = send(1);
    await run();
    const list = await runHere(['webhooks', 'list', '--event-id', event?.id ?? ''], env);
    assert.match(list.stdout, /BACKFILLED[\s\S]*\syes\s/);
    const show = await runHere(['webhooks', 'show', event?.id ?? '', '--json'], env);
    assert.equal(JSON.parse(show.stdout).backfilled, true);
    assert.equal(show.stdout.includes(STRIPE_KEY), false);
  });
});

const hourLater = (): string => new Date(Date.now() + 3_600_000).toISOString();
