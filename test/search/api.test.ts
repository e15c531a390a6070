import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { SearchAnswer } from '#core/search/search.ts';
import { seatName } from '#core/tickets/words.ts';
import { bury } from '../admin/support.ts';
import { HandWorld, type Order } from '../orders/hand_world.ts';
import { putOnSale } from '../server/support.ts';
import { claimMany } from '../work/support.ts';

const CLAIMS = 1_200;

describe('everything can be found', () => {
  let world: HandWorld;
  let order: Order;
  let letter: number;
  before(async () => {
    world = await HandWorld.start();
    await world.putOnSale('opera', 8);
    order = await world.bought('opera', 'ann', 'pi_3QhZ4aB1ann', 2);
    await putOnSale(world.db1, 'many', CLAIMS);
    await claimMany(world.db1, 'many', CLAIMS);
    await putOnSale(world.db1, 'buried', 5);
    letter = (await bury(world.db1, 'buried', 1, 'max_retries: the hook answers 500'))[0] as number;
  });
  after(() => world?.stop());

  async function search(q: string): Promise<SearchAnswer> {
    const { status, json, text } = await world.get(`/admin/search?q=${encodeURIComponent(q)}`);
    assert.equal(status, 200, text);
    return json;
  }
  const kinds = async (q: string) => (await search(q)).groups.map(({ kind }) => kind);
  const first = async (q: string) => (await search(q)).groups[0]?.items[0];

  it('by the whole of its id, or its beginning, in all databases at once', async () => {
    assert.deepEqual((await kinds(order.order_id)).slice(0, 3), ['claim', 'order', 'ticket']);
    const part = await search(order.order_id.slice(0, 23));
    assert.deepEqual(
      part.groups.slice(0, 3).map(({ kind, items }) => [kind, items.some(({ id }) => id === order.order_id)]),
      [
        ['claim', true],
        ['order', true],
        ['ticket', true],
      ],
    );
    assert.deepEqual(part.away, []);
  });

  it('an issue by its lane, its type, its error and its id, beside the pool of that name', async () => {
    const [issue] = (await world.get('/admin/issues?lane=buried')).json.issues;
    for (const q of [
      'buried',
      issue.type,
      issue.error,
      'the hook answers 503',
      issue.id,
      issue.id.slice(0, 8),
      `issue ${issue.id}`,
    ]) {
      const group = (await search(q)).groups.find(({ kind }) => kind === 'issue');
      assert.deepEqual(
        group?.items.map(({ id, ref, user_id, state, db }) => [id, ref, user_id, state, db]),
        [[issue.id, issue.type, 'buried', 'open', 1]],
        q,
      );
    }
    assert.ok((await kinds('buried')).includes('pool'));
    // The control: the middle of a word is not one.
    assert.deepEqual(await kinds('uried'), ['pool']);
  });

  it('by a user, a payment, a checkout, a pool, a letter and what the audit log calls it', async () => {
    assert.equal((await first('ann'))?.kind, 'user');
    assert.deepEqual(
      [(await first('pi_3QhZ'))?.kind, (await first('pi_3QhZ'))?.id],
      ['payment', 'stripe/pi_3QhZ4aB1ann'],
    );
    assert.deepEqual(
      [(await first('cs_test_1'))?.kind, (await first('cs_test_1'))?.id],
      ['order', order.order_id],
    );
    assert.ok((await kinds('oper')).includes('pool'));
    assert.equal((await first(`#${letter}`))?.kind, 'dead_letter');
    assert.ok((await kinds(`dead letter ${letter}`)).includes('dead_letter'));
  });

  it('and nothing is found by the tail of an id: no page shows one', async () => {
    assert.deepEqual(await kinds(order.order_id.slice(-12)), []);
  });

  it('a seat by the number or the label that its ticket shows, which leads to its claim', async () => {
    const { rows } = await world.db1.query(
      'select slot_id, claim_id from public.claims where claim_id = $1',
      [order.claims[0]],
    );
    const seat = (found: Awaited<ReturnType<typeof first>>) => [found?.kind, found?.ref, found?.why];
    const expected = ['slot', order.claims[0], 'seat'];
    assert.deepEqual(seat(await first(seatName(null, rows[0].slot_id))), expected);
    await world.db1.query('update public.inventory_slots set label = $1 where id = $2', [
      'Balcony 7',
      rows[0].slot_id,
    ]);
    assert.deepEqual(seat(await first(seatName('Balcony 7', rows[0].slot_id))), expected);
  });

  it('but not by nothing, or by more than an id can be', async () => {
    for (const q of ['', '%20', '%22%22', 'x'.repeat(501)])
      assert.equal((await world.get(`/admin/search?q=${q}`)).status, 422, q);
    assert.equal((await world.get('/admin/search')).status, 422);
  });

  it('in lists whose pages have numbers, with how many there are', async () => {
    const list = (query: string) => world.get(`/admin/claims?pool_id=many&limit=100&${query}`);
    const [one, two] = [await list('page=1'), await list('page=2')];
    const next = await list(`after=${one.json.next}`);
    assert.deepEqual(two.json.items, next.json.items);
    assert.equal((await list('page=12')).json.items.length, 100);
    assert.deepEqual((await list('page=13')).json, { items: [], next: null });
    assert.equal((await list('page=0')).status, 422);
    const total = async (path: string) => (await world.get(`/admin/totals/${path}`)).json;
    assert.deepEqual(await total('claims?pool_id=many'), { total: CLAIMS, how: 'exact' });
    assert.deepEqual(await total('tickets?user_id=ann'), { total: 2, how: 'exact' });
    assert.deepEqual(await total('dead-letters'), { total: 1, how: 'exact' });
    assert.deepEqual(await total('pools'), { total: 3, how: 'exact' });
    assert.deepEqual(
      (await world.get('/admin/pools?limit=2&page=2')).json.items.map(
        ({ pool_id }: { pool_id: string }) => pool_id,
      ),
      ['opera'],
    );
    for (const name of ['orders', 'payments', 'credits', 'events', 'calls', 'refunds', 'audit', 'audit?db=2'])
      assert.equal((await total(name)).how, 'exact', name);
    assert.equal((await world.get('/admin/totals/nothing')).status, 404);
    assert.equal((await world.get('/admin/totals/toString')).status, 404);
    assert.equal((await world.get('/admin/totals/claims?nonsense=1')).status, 422);
  });

  it('and taken along whole, as CSV and as JSON, with the filters of the list', async () => {
    const csv = await world.get('/admin/export/claims?pool_id=many');
    assert.match(csv.headers['content-type'] ?? '', /^text\/csv/);
    assert.match(
      csv.headers['content-disposition'] ?? '',
      /^attachment; filename="sluice-claims-[-\d]+\.csv"$/,
    );
    const lines = csv.text.trimEnd().split('\r\n');
    assert.equal(lines.length, 1 + CLAIMS);
    assert.match(lines[0] ?? '', /^claim_id,state,pool_id,user_id,/);
    assert.equal(new Set(lines.slice(1).map((line) => line.split(',')[0])).size, CLAIMS);
    const json = await world.get('/admin/export/claims?pool_id=many&format=json');
    assert.equal(json.json.length, CLAIMS);
    assert.ok(!('secret_matches' in json.json[0]));
    const none = await world.get('/admin/export/claims?pool_id=nothing&format=json');
    assert.deepEqual(none.json, []);
    for (const name of [
      'pools',
      'orders',
      'tickets',
      'payments',
      'credits',
      'events',
      'calls',
      'refunds',
      'audit',
      'audit?db=2',
      'dead-letters',
    ]) {
      const { status, text } = await world.get(`/admin/export/${name}`);
      assert.equal(status, 200, `${name}: ${text}`);
      assert.match(text.split('\r\n')[0] ?? '', /^\w+(,\w+)+$/, name);
    }
    const refunds = await world.get('/admin/export/refunds?format=json');
    for (const row of refunds.json) assert.ok(!('token' in row) && !('refund_key' in row));
    assert.equal((await world.get('/admin/export/claims?format=xml')).status, 422);
  });

  it('with what caused it and what it caused: claim, ticket, payment and event tell one story', async () => {
    const claimId = order.claims[0];
    const claim = await world.get(`/admin/claims/${claimId}`);
    const steps = claim.json.timeline.map(({ what }: { what: string }) => what);
    for (const step of ['claimed', 'checkout', 'decided_funds', 'payment', 'committed'])
      assert.ok(steps.includes(step), `${step} is not among ${steps}`);
    const ticket = await world.get(`/admin/tickets/${claimId}`);
    assert.deepEqual(
      [ticket.json.ticket.state, ticket.json.is_claim_known, ticket.json.ticket.order_id],
      ['valid', true, order.order_id],
    );
    const payment = await world.get('/admin/payments/stripe%2Fpi_3QhZ4aB1ann');
    assert.equal(payment.status, 200, payment.text);
    assert.equal(payment.json.payment.order_id, order.order_id);
    const told = payment.json.timeline.map(({ what }: { what: string }) => what);
    for (const step of ['event', 'credit_payment', 'credit_purchase', 'decided_funds'])
      assert.ok(told.includes(step), `${step} is not among ${told}`);
    const eventId = payment.json.timeline.find(({ what }: { what: string }) => what === 'event').detail.event;
    const event = await world.get(`/admin/webhooks/events/${eventId}`);
    assert.deepEqual(
      event.json.links.payments.map(({ payment_key }: { payment_key: string }) => payment_key),
      ['stripe/pi_3QhZ4aB1ann'],
    );
    assert.equal((await world.get('/admin/payments/stripe%2Fnothing')).status, 404);
    assert.equal((await world.get(`/admin/tickets/${order.order_id.replace(/^./, 'f')}`)).status, 404);
  });

  it('and a user with all of it', async () => {
    const summary = await world.get('/admin/users/ann/summary');
    assert.deepEqual(summary.json.away, []);
    assert.equal(summary.json.balance[0].provider, 'stripe');
    assert.deepEqual(summary.json.audit, []);
    await world.post('/admin/users/export', { user_id: 'ann', reason: 'she asked' });
    const { json } = await world.get('/admin/users/ann/summary');
    assert.deepEqual(
      new Set(json.audit.map(({ action, db }: { action: string; db: number }) => `${action} ${db}`)),
      new Set(['user_export 1', 'user_export 2']),
    );
    for (const list of ['tickets', 'payments', 'credits'])
      assert.ok((await world.get(`/admin/${list}?user_id=ann`)).json.items.length > 0, list);
  });

  it('needs no reason for a dry run, and one for the act', async () => {
    const body = { claim_ids: [order.claims[1]] };
    assert.equal((await world.post('/admin/claims/void', { ...body, dry_run: true })).status, 200);
    assert.equal((await world.post('/admin/claims/void', body)).status, 422);
  });
});

describe('while the ledger is away', () => {
  it('a search tells what the intake knows, and that the ledger could not be asked', async () => {
    const world = await HandWorld.start();
    try {
      await world.putOnSale('opera', 8);
      const order = await world.bought('opera', 'ann', 'pi_away', 1);
      await world.db2.end();
      await world.databases.db2.stop('immediate');
      const { status, json } = await world.get(`/admin/search?q=${order.order_id}`);
      assert.equal(status, 200);
      assert.deepEqual(json.away, ['DB2']);
      assert.deepEqual(
        json.groups.map(({ kind }: { kind: string }) => kind),
        ['claim', 'order'],
      );
      const payment = await world.get('/admin/search?q=pi_away');
      assert.equal(payment.json.groups[0].items[0].ref, order.order_id);
      const summary = await world.get('/admin/users/ann/summary');
      assert.deepEqual([summary.json.balance, summary.json.away], [null, ['DB2']]);
    } finally {
      await world.server.stop();
      await world.db1.end();
      await world.databases.stop();
    }
  });
});
