// `sluice reconcile --stripe`: the ledger beside Stripe's own books.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Dispute, ListedCharge } from '../../../src/stripe_stand_in/books.ts';
import { runHere } from '../../cli/support.ts';
import { WebhookWorld } from '../world.ts';
import { deliveryOf, envFor, type Providers, startProviders, stripeEvent } from './support.ts';

describe('reconcile with Stripe', () => {
  let world: WebhookWorld;
  let providers: Providers;
  let env: Record<string, string>;
  before(async () => {
    world = await WebhookWorld.start();
    providers = await startProviders();
    env = { ...envFor(providers, world.databases.db2.url), DB1_URL: world.databases.db1.url };
    await world.addEndpoint('stripe', 'stripe', 'queued', { accounts: ['acct_connected'] });
  });
  after(async () => {
    await providers?.stop();
    await world?.stop();
  });

  const charge = (payment: string, change: Partial<ListedCharge> = {}): ListedCharge => ({
    id: `ch_${payment}`,
    object: 'charge',
    amount: 100,
    amount_captured: 100,
    amount_refunded: 0,
    currency: 'eur',
    created: Math.floor(Date.now() / 1_000),
    payment_intent: payment,
    status: 'succeeded',
    ...change,
  });
  const reconcile = async (...words: string[]) => {
    const answer = await runHere(['reconcile', '--stripe', '--json', ...words], env);
    return { ...answer, found: answer.stdout === '' ? undefined : JSON.parse(answer.stdout) };
  };
  const deliver = async (id: string, change: Parameters<typeof stripeEvent>[1] = {}) => {
    await world.send('stripe', 'stripe', deliveryOf(stripeEvent(id, change)));
    await world.process();
  };

  it('finds nothing where both tell the same, and what moved no money is not missed', async () => {
    await deliver('evt_1');
    providers.stripe.charge(charge('pi_evt_1'));
    providers.stripe.charge(charge('pi_failed', { status: 'failed', amount_captured: 0 }));
    const { code, found } = await reconcile();
    assert.deepEqual([code, found], [0, { compared: ['stripe'], differences: [], commands: [] }]);
    const versions = providers.stripe.server.requests.map(({ headers }) => headers['stripe-version']);
    assert.deepEqual([...new Set(versions)], ['2025-03-31.basil']);
  });

  it('names payments that the ledger does not have and amounts that differ, and what to run', async () => {
    providers.stripe.charge(charge('pi_missing'));
    providers.stripe.charge(charge('pi_of_account'), 'acct_connected');
    await deliver('evt_2', { object: { amount_received: 60 } });
    providers.stripe.charge(charge('pi_evt_2', { amount_refunded: 30 }));
    const { code, found } = await reconcile();
    assert.equal(code, 1);
    assert.deepEqual(found.differences, [
      {
        endpoint: 'stripe',
        kind: 'captured_differs',
        payment: 'pi_evt_2',
        detail: 'Stripe 100, ledger 60 eur',
      },
      {
        endpoint: 'stripe',
        kind: 'refunded_differs',
        payment: 'pi_evt_2',
        detail: 'Stripe 30, ledger 0 eur',
      },
      {
        endpoint: 'stripe',
        kind: 'payment_missing',
        payment: 'pi_missing',
        detail: 'Stripe captured 100 eur',
      },
      {
        endpoint: 'stripe',
        kind: 'payment_missing',
        payment: 'pi_of_account',
        detail: 'Stripe captured 100 eur',
      },
    ]);
    assert.match(found.commands[0], /^sluice webhooks backfill stripe --since \d{4}-/);
    const text = await runHere(['reconcile', '--stripe'], env);
    assert.match(text.stdout, /payment_missing\s+pi_missing[\s\S]*sluice webhooks backfill stripe --since/);
  });

  it('is mended by the command that it names', async () => {
    const event = (id: string, payment: string, account?: string) =>
      stripeEvent(id, { object: { id: payment }, ...(account && { account }) });
    providers.stripe.send(event('evt_3', 'pi_missing'));
    providers.stripe.send(event('evt_4', 'pi_of_account', 'acct_connected'));
    const { found } = await reconcile();
    const [, ...words] = found.commands[0].split(' ');
    assert.equal((await runHere(words, env)).code, 0);
    await world.process();
    const left = (await reconcile()).found.differences;
    assert.deepEqual([...new Set(left.map((one: { payment: string }) => one.payment))], ['pi_evt_2']);
  });

  it('names disputes whose money the ledger does not have, and is mended by the command that it names', async () => {
    const created = Math.floor(Date.now() / 1_000);
    const moved = (id: string, amount: number, change = {}) => ({
      ...{
        id,
        object: 'balance_transaction',
        type: 'adjustment',
        amount,
        currency: 'eur',
        created,
        ...change,
      },
    });
    const dispute = (
      id: string,
      payment: string,
      status: Dispute['status'],
      ...moves: object[]
    ): Dispute => ({
      ...{ id, object: 'dispute', amount: 100, currency: 'eur', created, livemode: true, status },
      ...{ charge: `ch_${payment}`, payment_intent: payment, balance_transactions: moves },
    });
    const tell = (id: string, type: string, object: Dispute) =>
      stripeEvent(id, { type, object: { ...object } });
    const asked = dispute('dp_asked', 'pi_evt_1', 'warning_closed');
    const taken = dispute('dp_taken', 'pi_evt_1', 'needs_response', moved('txn_1', -60));
    const fee = moved('txn_fee', -15, { type: 'stripe_fee' });
    const lost = dispute('dp_taken', 'pi_evt_1', 'lost', moved('txn_1', -60), moved('txn_2', -40), fee);
    const settled = dispute(
      'dp_settled',
      'pi_missing',
      'lost',
      moved('txn_3', -120, { currency: 'usd', exchange_rate: 1.2 }),
    );
    const before = (await reconcile()).found.differences;
    for (const one of [asked, settled]) providers.stripe.books.put('dispute', one);
    providers.stripe.books.put('dispute', lost, 'acct_connected');
    for (const [id, type, object] of [
      ['evt_5', 'charge.dispute.closed', asked],
      ['evt_6', 'charge.dispute.created', taken],
    ] as const)
      await world.send('stripe', 'stripe', deliveryOf(tell(id, type, object)));
    // Stripe says that money moved, and not how much: the ledger cannot know it, and says so.
    await world.send(
      'stripe',
      'stripe',
      deliveryOf(tell('evt_7', 'charge.dispute.closed', { ...settled, balance_transactions: [] })),
    );
    await world.process();
    const silent = () =>
      world.rows<{ silent: number }>(`select (public.webhook_sample() ->> 'silent_disputes')::int as silent`);
    assert.deepEqual(await silent(), [{ silent: 1 }]);

    const { code, found } = await reconcile();
    assert.equal(code, 1);
    assert.deepEqual(
      found.differences.filter(({ kind }: { kind: string }) => kind === 'dispute_differs'),
      [
        {
          endpoint: 'stripe',
          kind: 'dispute_differs',
          payment: 'pi_missing',
          detail: 'dispute dp_settled: txn_3 moved -120 usd, and the ledger does not have it',
        },
        {
          endpoint: 'stripe',
          kind: 'dispute_differs',
          payment: 'pi_evt_1',
          detail: 'dispute dp_taken: txn_2 moved -40 eur, and the ledger does not have it',
        },
      ],
    );
    providers.stripe.send({ ...tell('evt_8', 'charge.dispute.closed', lost), account: 'acct_connected' });
    providers.stripe.send(tell('evt_9', 'charge.dispute.updated', settled));
    const [, ...words] = found.commands[0].split(' ');
    assert.equal((await runHere(words, env)).code, 0);
    await world.process();
    assert.deepEqual((await reconcile()).found.differences, before, 'no dispute differs');
    assert.deepEqual(await silent(), [{ silent: 0 }]);
    const refused = await runHere(['reconcile', '--stripe'], {
      ...env,
      STRIPE_API_KEY: 'rk_live_no_disputes_0123456789',
    });
    assert.match(
      refused.stderr,
      /rak_dispute_read[\s\S]*needs the rights to read events, charges and disputes/,
    );
  });

  it('repairs nothing, and says what it needs', async () => {
    for (const [words, code, expected] of [
      [['--stripe', '--fix'], 2, /--stripe repairs nothing/],
      [['--since', '2026-01-01'], 2, /--since is for --stripe/],
    ] as const) {
      const answer = await runHere(['reconcile', ...words], env);
      assert.equal(answer.code, code);
      assert.match(answer.stderr, expected);
    }
    // Sessions and what was bought stand in the intake: without it nothing of them would differ.
    const { DB1_URL: _, ...half } = env;
    const alone = await runHere(['reconcile', '--stripe'], half);
    assert.deepEqual([alone.code, alone.stdout], [1, '']);
    assert.match(alone.stderr, /^error: DB1_URL and DB2_URL must both be set\n/);
    const keyless = await runHere(['reconcile', '--stripe'], { ...env, STRIPE_API_KEY: '' });
    assert.match(keyless.stderr, /no Stripe endpoint has a key/);
    const refused = await runHere(['reconcile', '--stripe'], {
      ...env,
      STRIPE_API_KEY: 'rk_live_nothing_0123456789',
    });
    assert.match(refused.stderr, /rak_charge_read/);
  });
});
