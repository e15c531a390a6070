// Events of one payment, in every order: the state and the money come out the same.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { closeAll, interleave, openSessions, type Session } from '../support/sessions.ts';
import {
  applyEvent,
  permutations,
  playAll,
  preparePlay,
  rowOf,
  withChangedFunction,
} from './effects_support.ts';
import { PAID, refund, SETS } from './payment_sets.ts';

const ORDERS = permutations(6);
/** Every sixth: what comes again changes nothing, whatever the first round was. */
const ORDERS_TWICE = ORDERS.filter((_, at) => at % 6 === 0).map((order) => [...order, ...order]);

describe('payment events', () => {
  let databases: TestDatabases;
  let observer: Session;
  let first: Session;
  let second: Session;

  before(async () => {
    databases = await startDatabases({ db1: false });
    [observer, first, second] = (await openSessions(databases.db2.url, 3)) as [Session, Session, Session];
    await preparePlay(first);
  });
  after(async () => {
    await closeAll([observer, first, second].filter((session) => session !== undefined));
    await databases?.stop();
  });

  for (const { name, events, outcome } of Object.values(SETS)) {
    test(`come to the same in all 720 orders: ${name}`, async () => {
      assert.deepEqual(await playAll(first, events, ORDERS), { [outcome]: 720 });
    });

    test(`come to the same in 120 orders when each is delivered twice: ${name}`, async () => {
      assert.deepEqual(await playAll(first, events, ORDERS_TWICE), { [outcome]: 120 });
    });
  }

  const differ = (outcomes: Record<string, number>) =>
    assert(Object.keys(outcomes).length > 1, JSON.stringify(outcomes));

  test('would differ if the latest event won instead of the highest state', async () => {
    differ(
      await withChangedFunction(
        first,
        'webhook.merge_payment',
        '(p_told.told, p_told.occurred_at, p_told.arrival) > (p_known.told, p_known.occurred_at, p_known.arrival)',
        '(p_told.occurred_at, p_told.arrival) > (p_known.occurred_at, p_known.arrival)',
        () => playAll(first, SETS.disputed.events, ORDERS),
      ),
    );
  });

  test('would be credited twice if each event were a capture of its own', async () => {
    const outcomes = await withChangedFunction(
      first,
      'webhook.merge_payment',
      'greatest(p_known.captured, p_told.captured)',
      'p_known.captured + p_told.captured',
      () => playAll(first, SETS.disputed.events, ORDERS),
    );
    assert.equal(outcomes[SETS.disputed.outcome], undefined, JSON.stringify(outcomes));
  });

  test('would debit what a hold let go if that counted as a refund', async () => {
    const { takenInPartAndRefunded } = SETS;
    const outcomes = await withChangedFunction(
      first,
      'webhook.count_refunds',
      'then p_payment.held - p_payment.amount else 0 end',
      'then 0 else 0 end',
      () => playAll(first, takenInPartAndRefunded.events, ORDERS),
    );
    assert.deepEqual(outcomes, {
      'partially_refunded, paid 600, refunded 500, balance 100 usd': 720,
    });
  });

  test('would lose real refunds to a hold if one old event made all refunds look like its rest', async () => {
    const outcomes = await withChangedFunction(
      first,
      'webhook.count_refunds',
      'r.may_be_release and r.amount = p_payment.held - p_payment.amount)',
      'p_payment.held > p_payment.amount)',
      () => playAll(first, SETS.backfilledInOld.events, ORDERS),
    );
    assert.equal(outcomes[SETS.backfilledInOld.outcome], undefined, JSON.stringify(outcomes));
  });

  test('would debit an unpaid hold if refunds counted without a payment', async () => {
    const outcomes = await withChangedFunction(
      first,
      'webhook.count_refunds',
      'least(coalesce(p_payment.amount, 0), greatest(',
      'least(null, greatest(',
      () => playAll(first, SETS.voided.events, ORDERS),
    );
    assert.equal(outcomes[SETS.voided.outcome], undefined, JSON.stringify(outcomes));
  });

  const balance = () => observer.value<number>(`select amount::int from webhook.balance('ann_RUN')`);
  const startAgain = async () => {
    await observer.client.query(
      'truncate public.payments, public.payment_refunds, public.payment_transactions',
    );
    // Only a test may: for every other client the trigger refuses it.
    await observer.client.query(
      `alter table public.credit_ledger disable trigger credit_ledger_is_insert_only;
       truncate public.credit_ledger;
       alter table public.credit_ledger enable always trigger credit_ledger_is_insert_only`,
    );
  };
  const raceOf = (one: Parameters<typeof rowOf>[0], other: Parameters<typeof rowOf>[0]) =>
    interleave(
      observer,
      { session: first, run: () => applyEvent(first, { ...rowOf(one, 11), arrival: 11 }), end: 'commit' },
      { session: second, run: () => applyEvent(second, { ...rowOf(other, 12), arrival: 12 }) },
    );

  test('that tell one fact at the same time make one credit', async () => {
    await startAgain();
    const answers = await raceOf(PAID.byIntent, PAID.byCharge);
    assert.deepEqual(answers, { first: null, second: 'already known' });
    assert.equal(await balance(), 1000);
  });

  const raceOfRefunds = async () => {
    await startAgain();
    await applyEvent(observer, { ...rowOf(PAID.byIntent, 10), arrival: 10 });
    await raceOf(refund('created', 1, 're_1', 300), refund('created', 1, 're_2', 300));
    return balance();
  };

  test('of two refunds at the same time debit both', async () => {
    assert.equal(await raceOfRefunds(), 400);
  });
});
