import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ADMIN_KEY, ask, assertRefusal, bearer } from '../server/support.ts';
import { HandWorld, PRICE } from './hand_world.ts';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

describe('orders in the admin API', () => {
  let world: HandWorld;
  before(async () => {
    world = await HandWorld.start();
    await world.putOnSale('opera', 20);
  });
  after(() => world?.stop());

  const whats = async (id: string): Promise<string[]> => {
    const { json, text } = await world.get(`/admin/orders/${encodeURIComponent(id)}`);
    assert.ok(json.timeline, text);
    return json.timeline.map(({ what }: { what: string }) => what);
  };

  it('show an order by any of its claims and by its payment, from the hold to the tickets', async () => {
    const order = await world.bought('opera', 'ann', 'pi_ann', 2);
    const { json } = await world.get(`/admin/orders/${order.order_id}`);
    assert.deepEqual(
      [json.order.status, json.order.seats, json.order.amount, json.order.payment_key, json.is_ledger_known],
      ['paid', 2, 2 * PRICE, 'stripe/pi_ann', true],
    );
    assert.deepEqual(
      json.claims.map(({ state }: { state: string }) => state),
      ['committed', 'committed'],
    );
    assert.equal(json.tickets.length, 2);
    for (const id of [order.claims[1] ?? '', 'pi_ann', 'stripe/pi_ann']) {
      const same = await world.get(`/admin/orders/${encodeURIComponent(id)}`);
      assert.equal(same.json.order.order_id, order.order_id, id);
    }
    const steps = await whats(order.order_id);
    for (const what of ['held', 'checkout', 'payment', 'event', 'decided_funds', 'ticket'])
      assert.ok(steps.includes(what), `${what} in ${steps}`);
    assert.ok(steps.indexOf('held') < steps.indexOf('checkout'));
    assert.ok(steps.indexOf('decided_funds') < steps.indexOf('ticket'));
  });

  it('are not found where the claim or payment is unknown, or the pool takes no payments', async () => {
    assertRefusal(await world.get(`/admin/orders/${UNKNOWN_ID}`), 404, 'unknown_claim');
    assertRefusal(await world.get('/admin/orders/pi_none'), 404, 'not_found');
    await world.putOnSale('free', 1, {
      confirm_by: 'auto',
      price: null,
      currency: null,
      payment_tenant: null,
      hold_sec: null,
    });
    const { order_id } = await world.order('free', 'bob');
    assertRefusal(await world.get(`/admin/orders/${order_id}`), 404, 'not_found');
  });

  it('list orders newest first, by pool, user and status, page by page', async () => {
    await world.putOnSale('ballet', 10);
    const first = await world.order('ballet', 'cat');
    const second = await world.order('ballet', 'dan', 2);
    await world.pay(second, await world.checkout(second), 'pi_dan');
    await world.carry();
    const ids = async (query: string) =>
      (await world.get(`/admin/orders?${query}`)).json.items.map((one: { order_id: string }) => one.order_id);
    assert.deepEqual(await ids('pool_id=ballet'), [second.order_id, first.order_id]);
    assert.deepEqual(await ids('pool_id=ballet&status=held'), [first.order_id]);
    assert.deepEqual(await ids('pool_id=ballet&status=paid'), [second.order_id]);
    assert.deepEqual(await ids('user_id=cat'), [first.order_id]);
    const page = (await world.get('/admin/orders?pool_id=ballet&limit=1')).json;
    assert.equal(page.next, second.order_id);
    assert.deepEqual(await ids(`pool_id=ballet&limit=1&after=${page.next}`), [first.order_id]);
    const [row] = (await world.get('/admin/orders?pool_id=ballet&status=paid')).json.items;
    assert.deepEqual([row.amount, row.currency, row.seats, row.user_id], [2 * PRICE, 'eur', 2, 'dan']);
    assertRefusal(await world.get('/admin/orders?status=lost'), 422, 'invalid_input');
  });

  it('list refunds that are owed; an operator sends or skips them, with a dry run and an audit row', async () => {
    const order = await world.bought('opera', 'eva', 'pi_eva');
    // A second payment through a link of the seller's waits for an operator.
    const link = { metadata: { claim_id: order.order_id, user_id: 'eva', verified: 'false' } };
    await world.pay(order, 'cs_link', 'pi_eva_2', link);
    await world.pay(order, 'cs_link_3', 'pi_eva_3', link);
    await world.carry();
    const { json } = await world.get('/admin/refunds?state=review');
    assert.deepEqual(
      json.items.map(({ id, reason, amount }: Record<string, unknown>) => [id, reason, amount]),
      [
        ['settle:stripe/pi_eva_3', 'second_payment', PRICE],
        ['settle:stripe/pi_eva_2', 'second_payment', PRICE],
      ],
    );
    assert.ok(!('token' in json.items[0]) && !('refund_key' in json.items[0]));
    const ids = ['settle:stripe/pi_eva_2', 'settle:stripe/pi_none'];
    const outcomes = async (act: string, body: object) =>
      (await world.post(`/admin/refunds/${act}`, body)).json.results.map(
        ({ outcome }: { outcome: string }) => outcome,
      );
    assert.deepEqual(await outcomes('send', { ids, dry_run: true }), ['would_send', 'unknown']);
    assert.equal(
      (await world.get(`/admin/refunds/${encodeURIComponent(ids[0] ?? '')}`)).json.state,
      'review',
    );
    assert.deepEqual(await outcomes('send', { ids, reason: 'she asked' }), ['due', 'unknown']);
    assert.deepEqual(await outcomes('send', { ids }), ['unchanged', 'unknown'], 'once');
    const kept = { ids: ['settle:stripe/pi_eva_3'], reason: 'refunded by hand' };
    assert.deepEqual(await outcomes('skip', { ...kept, dry_run: true }), ['would_skip']);
    assert.deepEqual(await outcomes('skip', kept), ['skipped']);
    const steps = await whats(order.order_id);
    for (const what of ['refund_due', 'refund_skipped', 'refund_send', 'refund_skip', 'decided_refund'])
      assert.ok(steps.includes(what), `${what} in ${steps}`);
    assertRefusal(await world.get('/admin/refunds/settle:none'), 404, 'not_found');
    assertRefusal(await world.post('/admin/refunds/send', { ids: [] }), 422, 'invalid_input');
  });

  it('say refunded once an operator has skipped the refund of an order, to its buyer and in the console', async () => {
    await world.putOnSale('revue', 1);
    const order = await world.order('revue', 'joy');
    const link = { metadata: { claim_id: order.order_id, user_id: 'joy', verified: 'false' } };
    await world.pay(order, 'cs_link_4', 'pi_joy', { ...link, amount_total: 1 });
    await world.carry();
    const claimUrl = `${world.server.url}/v1/claims/${order.order_id}`;
    const released = await ask(claimUrl, { method: 'DELETE', headers: bearer(ADMIN_KEY) });
    assert.equal(released.status, 200, released.text);
    const statuses = async () => [
      (await world.get(`/v1/claims/${order.order_id}`)).json.order.status,
      (await world.get(`/admin/orders/${order.order_id}`)).json.order.status,
    ];
    assert.deepEqual(await statuses(), ['refund_due', 'refund_due']);
    const body = { ids: ['settle:stripe/pi_joy'], reason: 'paid back in cash' };
    assert.equal((await world.post('/admin/refunds/skip', body)).json.results[0].outcome, 'skipped');
    assert.deepEqual(await statuses(), ['refunded', 'refunded']);
  });

  it('void claims that an operator names: a plan first, then the ticket is gone and its seat on sale', async () => {
    await world.putOnSale('cinema', 2);
    const order = await world.bought('cinema', 'fay', 'pi_fay', 2);
    const [first = '', second = ''] = order.claims;
    const results = async (body: object) => (await world.post('/admin/claims/void', body)).json.results;
    const plan = await results({ claim_ids: [first, UNKNOWN_ID], reason: 'rain', dry_run: true });
    assert.deepEqual(plan, [
      { claim_id: first, outcome: 'would_void' },
      { claim_id: UNKNOWN_ID, outcome: 'unknown_claim' },
    ]);
    assert.equal((await world.get('/admin/pools/cinema')).json.available, 0, 'a dry run changes nothing');
    const done = await results({ claim_ids: [first], reason: 'rain', refund: true });
    assert.deepEqual(done, [{ claim_id: first, outcome: 'void_requested' }]);
    await world.carry();
    const { json } = await world.get(`/admin/orders/${second}`);
    assert.deepEqual(json.claims.map(({ state }: { state: string }) => state).sort(), [
      'committed',
      'voided',
    ]);
    assert.deepEqual(
      json.refunds.map(({ amount, decided_by, state }: Record<string, unknown>) => [
        amount,
        decided_by,
        state,
      ]),
      [[PRICE, 'admin', 'due']],
    );
    const step = json.timeline.find(({ what }: { what: string }) => what === 'ticket_void');
    assert.deepEqual([step.detail.actor, step.detail.reason], ['admin', 'rain']);
    assert.equal((await world.get('/admin/pools/cinema')).json.available, 1);
    assert.deepEqual(await results({ claim_ids: [first], reason: 'again' }), [
      { claim_id: first, outcome: 'already_voided' },
    ]);
    const held = await world.order('cinema', 'gus');
    assert.deepEqual(await results({ claim_ids: [held.order_id], reason: 'x' }), [
      { claim_id: held.order_id, outcome: 'held_release_instead' },
    ]);
    assertRefusal(await world.post('/admin/claims/void', { claim_ids: [first] }), 422, 'invalid_input');
  });

  it('void a claim with a refund after a void without one, and once', async () => {
    await world.putOnSale('circus', 2);
    const order = await world.bought('circus', 'ian', 'pi_ian', 2);
    const [first = '', second = ''] = order.claims;
    const again = async (refund: boolean, ids: string[], dry_run = false) => {
      const body = { claim_ids: ids, refund, reason: 'rain', dry_run };
      const { json } = await world.post('/admin/claims/void', body);
      return json.results.map(({ outcome }: { outcome: string }) => outcome).join(' ');
    };
    const owed = async () =>
      (await world.get(`/admin/orders/${order.order_id}`)).json.refunds.map(
        ({ amount, state }: Record<string, unknown>) => `${amount} ${state}`,
      );
    assert.equal(await again(false, [first]), 'void_requested');
    await world.carry();
    assert.equal(await again(false, [first]), 'already_voided');
    assert.equal(await again(true, [first], true), 'would_void');
    assert.deepEqual(await owed(), []);
    assert.equal(await again(true, [first]), 'void_requested');
    await world.carry();
    assert.deepEqual(await owed(), [`${PRICE} due`]);
    assert.equal(await again(true, [first]), 'already_voided');
    // Both before a courier comes.
    assert.equal(await again(false, [second]), 'void_requested');
    assert.equal(await again(true, [second]), 'void_requested');
    await world.carry();
    assert.deepEqual(await owed(), [`${PRICE} due`, `${PRICE} due`]);
    assert.equal(await again(true, [first, second]), 'already_voided already_voided');
  });

  it('void a ticket again that a ledger restored to a moment before the void has again', async () => {
    await world.putOnSale('museum', 1);
    const { order_id } = await world.bought('museum', 'hal', 'pi_hal');
    const again = async () => {
      const body = { claim_ids: [order_id], reason: 'rain' };
      const { json } = await world.post('/admin/claims/void', body);
      await world.carry();
      return json.results[0].outcome;
    };
    const ticket = 'select to_jsonb(t) as row from public.confirmed_tickets t where claim_id = $1';
    const [before] = (await world.db2.query(ticket, [order_id])).rows;
    assert.equal(await again(), 'void_requested');
    assert.equal(await again(), 'already_voided');
    await world.db2.query('delete from public.voided_tickets where claim_id = $1', [order_id]);
    await world.db2.query(
      'insert into public.confirmed_tickets select * from jsonb_populate_record(null::public.confirmed_tickets, $1)',
      [before.row],
    );
    assert.equal(await again(), 'void_requested');
    assert.deepEqual((await world.db2.query(ticket, [order_id])).rows, []);
    assert.equal(await again(), 'already_voided');
    assert.equal((await world.get('/admin/pools/museum')).json.available, 1);
  });
});

describe('orders while the ledger is away', () => {
  it('show what the intake knows, and say that the rest is not known', async (t) => {
    const world = await HandWorld.start();
    t.after(() => world.stop());
    await world.putOnSale('opera', 2);
    const order = await world.order('opera', 'ann', 2);
    world.db2.on('error', () => undefined);
    await world.databases.db2.stop('immediate');
    const { status, json } = await world.get(`/admin/orders/${order.order_id}`);
    assert.deepEqual(
      [status, json.order.status, json.is_ledger_known, json.tickets],
      [200, 'held', false, []],
    );
    assert.equal(json.timeline.at(-1).what, 'ledger_unreachable');
  });
});
