// Two that touch one order in the ledger at the same time, in real sessions and both orders: the second waits for the first, and
// then knows. Nothing is owed twice, no money that went back is owed, and a ticket is let in once or not at all.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Session, waitsFor } from '../support/sessions.ts';
import { useLedger } from '../support/suite.ts';

const PRICE = 1000;

describe('two at one order', () => {
  const { observer, one, two } = useLedger('observer', 'one', 'two');
  let made = 0;

  type Order = { id: string; payment: string; key: string };
  const newOrder = (): Order => {
    const payment = `pi_${++made}`;
    return {
      id: `00000000-0000-4000-8000-${String(made).padStart(12, '0')}`,
      payment,
      key: `stripe/${payment}`,
    };
  };

  before(async () => {
    await observer.rows(
      `select webhook.add_endpoint('stripe_live', 'stripe', '{STRIPE_WEBHOOK_SECRET}', p_actor => 'test')`,
    );
  });

  /** As the handler of an event does it. */
  const tell = (session: Session, type: string, object: object) =>
    session.rows(
      `select webhook.apply_payment(jsonb_populate_record(null::public.webhook_events, jsonb_build_object(
         'provider', 'stripe', 'event_id', 'evt_' || n, 'event_type', $1::text, 'arrival', n, 'received_at', now(),
         'payload', jsonb_build_object('data', jsonb_build_object('object', $2::jsonb))))) as answer
       from nextval('webhook.arrival_seq') n`,
      [type, JSON.stringify(object)],
    );
  const pay = ({ id, payment }: Order) =>
    tell(observer, 'payment_intent.succeeded', {
      id: payment,
      amount: PRICE,
      currency: 'usd',
      livemode: true,
      metadata: { user_id: 'ann', claim_id: id },
    });
  const refund = ({ payment }: Order, more: object = {}) => ({
    id: `re_${payment}`,
    object: 'refund',
    payment_intent: payment,
    amount: PRICE,
    currency: 'usd',
    status: 'pending',
    ...more,
  });
  const take = async (order: Order): Promise<string> => {
    await observer.rows(`update public.claim_outbox set next_attempt_at = '-infinity' where id = $1`, [
      `settle:${order.key}`,
    ]);
    return observer.value<string>('select token from public.outbox_take(1, 600)');
  };
  const settle = (session: Session, order: Order, token: string, decision: string) =>
    session.value<string>('select public.outbox_finish($1, $2, $3)', [
      `settle:${order.key}`,
      token,
      JSON.stringify({ decision, is_own: true, refund_by: 'sluice', claim_ids: [order.id] }),
    ]);
  const sell = async (order: Order) => {
    await pay(order);
    await settle(observer, order, await take(order), 'funds');
    await observer.rows('select public.finalize_transaction($1)', [
      JSON.stringify({
        claim_id: order.id,
        resource_id: order.id,
        pool_id: 'p',
        user_id: 'ann',
        order_id: order.id,
      }),
    ]);
  };
  /** What the ledger says of the payment, and what is owed of it. */
  const sums = ({ payment, key }: Order) =>
    observer.value<string>(
      `select (select coalesce(sum(amount), 0) from public.credit_ledger where object_id = $1) || ' '
         || (select coalesce(sum(amount), 0) from public.refunds_due
             where payment_key = $2 and state in ('due', 'review', 'failed'))`,
      [payment, key],
    );
  const check = (session: Session, { id }: Order) =>
    session.value<string>(`select outcome from public.check_ticket($1, 'gate')`, [id]);

  /** `first` works in an open transaction, `second` begins and waits for it, and the first ends as told. */
  const race = async <One, Other>(
    first: () => Promise<One>,
    second: () => Promise<Other>,
    how: 'commit' | 'rollback' = 'commit',
    waits = true,
  ): Promise<[One, Other]> => {
    await one.client.query('begin');
    const before = await first();
    const after = second();
    if (waits) await waitsFor(observer, two, one);
    else await after;
    await one.client.query(how);
    return [before, await after];
  };

  test('two scanners: one lets it in', async () => {
    const order = newOrder();
    await sell(order);
    assert.deepEqual(
      await race(
        () => check(one, order),
        () => check(two, order),
      ),
      ['valid', 'used'],
    );
  });

  test('two scanners, and the first one fails: the second lets it in', async () => {
    const order = newOrder();
    await sell(order);
    assert.deepEqual(
      await race(
        () => check(one, order),
        () => check(two, order),
        'rollback',
      ),
      ['valid', 'valid'],
    );
  });

  test('a scanner that meets a refund waits for it', async () => {
    const order = newOrder();
    await sell(order);
    const [, outcome] = await race(
      () => tell(one, 'refund.created', refund(order)),
      () => check(two, order),
    );
    assert.equal(outcome, 'voided');
    assert.equal(await sums(order), '0 0');
  });

  test('a refund that meets a scanner waits for it: the use stays known', async () => {
    const order = newOrder();
    await sell(order);
    await race(
      () => check(one, order),
      () => tell(two, 'refund.created', refund(order)),
    );
    const [details] = await observer.rows('select * from public.ticket_details($1)', [order.id]);
    assert.ok(details?.used_at && details.voided_at);
  });

  test('a refund is told while the intake says that the payment buys nothing: nothing is owed', async () => {
    for (const isDecisionFirst of [true, false]) {
      const order = newOrder();
      await pay(order);
      const token = await take(order);
      const decide = (session: Session) => () => settle(session, order, token, 'refund');
      const goBack = (session: Session) => () => tell(session, 'refund.created', refund(order));
      await (isDecisionFirst
        ? race<unknown, unknown>(decide(one), goBack(two))
        : race<unknown, unknown>(goBack(one), decide(two)));
      assert.equal(await sums(order), '0 0', `the decision ${isDecisionFirst ? 'first' : 'second'}`);
    }
  });

  test('a refund is told while the intake says what the payment bought: the courier is to take that back', async () => {
    const order = newOrder();
    await pay(order);
    const token = await take(order);
    await race(
      () => settle(one, order, token, 'funds'),
      () => tell(two, 'refund.created', refund(order)),
      'commit',
      false,
    );
    const [row] = await observer.rows(
      `select state, fact ->> 'cause' as cause from public.claim_outbox where id = $1`,
      [`void:${order.key}`],
    );
    assert.deepEqual(row, { state: 'due', cause: 'refund' });
  });

  test("Stripe's answer and its webhook tell one refund once", async () => {
    for (const isAnswerFirst of [true, false]) {
      const order = newOrder();
      await pay(order);
      await settle(observer, order, await take(order), 'refund');
      const [due] = await observer.rows('select id, token, refund_key from public.refunds_take(1, 600)');
      const stripes = refund(order, { metadata: { sluice_refund: due?.refund_key } });
      const answer = (session: Session) => () =>
        session.value<string>('select public.refund_sent($1, $2, $3)', [
          due?.id,
          due?.token,
          JSON.stringify(stripes),
        ]);
      const webhook = (session: Session) => () => tell(session, 'refund.created', stripes);
      await (isAnswerFirst
        ? race<unknown, unknown>(answer(one), webhook(two))
        : race<unknown, unknown>(webhook(one), answer(two)));
      assert.equal(await sums(order), '0 0');
      const [row] = await observer.rows(
        'select state, provider_refund_id from public.refunds_due where id = $1',
        [due?.id],
      );
      assert.deepEqual(row, { state: 'sent', provider_refund_id: stripes.id });
    }
  });

  test('two couriers have no row in common', async () => {
    const orders = [newOrder(), newOrder()];
    for (const order of orders) await pay(order);
    await observer.rows(`update public.claim_outbox set next_attempt_at = '-infinity' where state = 'due'`);
    await one.client.query('begin');
    const first = await one.rows<{ id: string }>('select id from public.outbox_take(1, 600)');
    const second = await two.rows<{ id: string }>('select id from public.outbox_take(100, 600)');
    await one.client.query('commit');
    assert.equal(first.length, 1);
    assert.ok(second.length > 0 && second.every(({ id }) => id !== first[0]?.id));
  });

  describe('without the lock of the payment', () => {
    let original: string;
    before(async () => {
      original = await observer.value<string>(`select pg_get_functiondef('webhook.lock_payment'::regproc)`);
      assert.match(original, /for update/);
      await observer.client.query(original.replace('for update', ''));
    });
    after(() => observer.client.query(original));

    test('control: what went back meanwhile is owed', async () => {
      const order = newOrder();
      await pay(order);
      const token = await take(order);
      await race(
        () => settle(one, order, token, 'refund'),
        () => tell(two, 'refund.created', refund(order)),
        'commit',
        false,
      );
      assert.equal(await sums(order), `0 ${PRICE}`);
    });
  });
});
