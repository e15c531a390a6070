// `sluice reconcile` after the intake was restored to an earlier moment: voids that it forgot, decisions that it lost.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runHere } from '../cli/support.ts';
import { HandWorld, type Order, PRICE } from './hand_world.ts';

describe('reconcile of orders', () => {
  let world: HandWorld;
  before(async () => {
    world = await HandWorld.start();
    await world.putOnSale('opera', 20);
  });
  after(() => world?.stop());

  async function reconcile(...words: string[]) {
    const { code, stdout, stderr } = await runHere(['reconcile', '--json', ...words], world.env);
    assert.equal(stderr, '');
    const found: { kind: string; slot_id: string | null; payment_key?: string; outcome: string }[] =
      JSON.parse(stdout).differences;
    return {
      code,
      found: found.map((one) => `${one.kind} ${one.payment_key ?? one.slot_id} ${one.outcome}`),
    };
  }

  it('finds nothing wrong with orders that are held, paid, voided and refunded', async () => {
    await world.order('opera', 'held', 2);
    const paid = await world.bought('opera', 'paid', 'pi_paid', 2);
    await world.pay(paid, 'cs_second', 'pi_second');
    const voided = await world.bought('opera', 'voided', 'pi_voided');
    await world.db2.query(`select public.request_void(array[$1::uuid], true, 'ann', 'rain')`, [
      voided.order_id,
    ]);
    await world.carry();
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
  });

  it('finds a void that the intake forgot, and finishes it', async () => {
    const order = await world.bought('opera', 'gus', 'pi_gus');
    const slot = (
      await world.db1.query('select slot_id from public.claims where claim_id = $1', [order.order_id])
    ).rows[0].slot_id;
    // The ledger is told, the courier is done, and the intake is as it was before.
    const { rows } = await world.db2.query(
      `select public.request_void(array[$1::uuid], false, 'ann', 'rain') as id`,
      [order.order_id],
    );
    await world.carryWithoutIntake(rows[0].id);
    assert.deepEqual(await reconcile(), { code: 1, found: [`void_unfinished ${slot} found`] });
    assert.deepEqual(await reconcile('--fix'), { code: 0, found: [`void_unfinished ${slot} fixed`] });
    assert.equal(await world.stateOf(order.order_id), 'voided');
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
    const { rows: audit } = await world.db1.query(
      `select reason from audit.audit_logs where action = 'reconcile_fix' and subject = 'slot ' || $1`,
      [slot],
    );
    assert.deepEqual(audit, [{ reason: 'void_unfinished' }]);
  });

  it('leaves a void alone that the courier has not finished', async () => {
    const order = await world.bought('opera', 'ida', 'pi_ida');
    const { rows } = await world.db2.query(
      `select public.request_void(array[$1::uuid], false, 'ann', 'rain') as id`,
      [order.order_id],
    );
    await world.carryWithoutIntake(rows[0].id, 'due');
    const { found } = await reconcile();
    assert.deepEqual(
      found.filter((one) => one.startsWith('void_unfinished')),
      [],
    );
    await world.carry();
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
  });

  /** The intake as it was before any payment for the order: held, and its hold runs. Its messages are not carried yet. */
  async function forget({ order_id, claims }: Order): Promise<void> {
    await world.db1.query(`delete from public.order_payments where order_id = $1`, [order_id]);
    await world.db1.query(
      `with held as (
         update public.claims c set state = 'held', paid = null, msg_id = null, freed_at = null, end_reason = null
         from public.claims b where c.claim_id = any ($1) and b.claim_id = c.claim_id returning b.msg_id, c.slot_id
       ), reserved as (
         update public.inventory_slots s set status = 'RESERVED' from held h where s.id = h.slot_id
       )
       delete from pgmq.q_intake_queue q using held h where q.msg_id = h.msg_id`,
      [claims],
    );
    await world.db1.query(
      `update public.orders set payment_key = null, hold_until = now() + interval '10 minutes' where order_id = $1`,
      [order_id],
    );
  }
  const decisions = async ({ order_id }: Order): Promise<string[]> => {
    const sql = `select payment_key || ' ' || decision as said from public.order_payments where order_id = $1 order by 1`;
    return (await world.db1.query(sql, [order_id])).rows.map(({ said }) => said);
  };

  it('gives no seat for a payment that went back after a decision that the intake forgot', async () => {
    const order = await world.order('opera', 'kay');
    const session = await world.checkout(order);
    // It was not enough, and the intake is then set back to where it would be.
    await world.pay({ ...order, amount: 1 }, session, 'pi_kay');
    await world.carry();
    assert.deepEqual(await decisions(order), ['stripe/pi_kay refund']);
    const refund = { id: 're_kay', object: 'refund', payment_intent: 'pi_kay', amount: 1, currency: 'eur' };
    await world.db2.query(`select public.record_pulled('stripe', $1)`, [{ ...refund, status: 'succeeded' }]);
    await world.carry();
    await world.db1.query(`update public.orders set unit_price = 1 where order_id = $1`, [order.order_id]);
    await forget(order);
    assert.deepEqual(await reconcile('--fix'), { code: 0, found: ['payment_unsettled stripe/pi_kay fixed'] });
    await world.carry();
    assert.deepEqual(await decisions(order), ['stripe/pi_kay void']);
    assert.equal(await world.stateOf(order.order_id), 'held');
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
  });

  it('lets the payment buy that bought before, and not the second one of its order', async () => {
    const order = await world.order('opera', 'lou');
    await world.pay(order, await world.checkout(order), 'pi_lou_2');
    await world.carry();
    await world.pay(order, 'cs_again', 'pi_lou_1');
    await world.carry();
    const decided = ['stripe/pi_lou_1 refund', 'stripe/pi_lou_2 funds'];
    assert.deepEqual(await decisions(order), decided);
    await forget(order);
    const found = ['payment_unsettled stripe/pi_lou_1 fixed', 'payment_unsettled stripe/pi_lou_2 fixed'];
    assert.deepEqual(await reconcile('--fix'), { code: 0, found });
    await world.carry();
    assert.deepEqual(await decisions(order), decided);
    await world.bridge();
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
  });

  it('has a payment decided again before a worker can end the hold, which is over', async () => {
    const order = await world.order('opera', 'mia');
    await world.pay(order, await world.checkout(order), 'pi_mia');
    await world.carry();
    await forget(order);
    await world.db1.query(
      `update public.orders set hold_until = now() - interval '1 hour', grace_until = now() - interval '1 hour'
       where order_id = $1`,
      [order.order_id],
    );
    // The control: a worker that starts first gives the seat back.
    await world.db1.query('begin');
    await world.db1.query('select public.expire_holds()');
    assert.equal(await world.stateOf(order.order_id), 'expired');
    await world.db1.query('rollback');
    assert.deepEqual(await reconcile('--fix'), { code: 0, found: ['payment_unsettled stripe/pi_mia fixed'] });
    await world.db1.query('select public.expire_holds()');
    assert.deepEqual(await decisions(order), ['stripe/pi_mia funds']);
    await world.bridge();
    assert.equal(await world.stateOf(order.order_id), 'committed');
  });

  it('makes the order of a ticket again, so that a refund voids it and a void refunds it', async () => {
    const [first = '', second = ''] = (await world.bought('opera', 'ned', 'pi_ned', 2)).claims;
    // The intake is as it was before the order was claimed.
    const lost = [[first, second]];
    const { rows } = await world.db1.query(
      'delete from public.claims where claim_id = any ($1) returning slot_id',
      lost,
    );
    for (const table of ['orders', 'order_payments', 'checkouts'])
      await world.db1.query(`delete from public.${table} where order_id = $1`, [first]);
    await world.db1.query(`update public.inventory_slots set status = 'AVAILABLE' where id = any ($1)`, [
      rows.map(({ slot_id }) => slot_id),
    ]);
    const { code, found } = await reconcile('--fix');
    const slots = rows.map(({ slot_id }) => `ticket_on_sale ${slot_id} fixed`).sort();
    // Its tickets tell what it paid for: no decision is missing any more.
    assert.deepEqual([code, found.sort()], [0, slots]);
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
    const status = async () => (await world.get(`/admin/orders/${second}`)).json.order.status;
    assert.equal(await status(), 'paid');

    const tickets = async () => {
      const sql = 'select claim_id from public.confirmed_tickets where claim_id = any ($1)';
      return (await world.db2.query(sql, lost)).rows.map(({ claim_id }) => claim_id);
    };
    await world.post('/admin/claims/void', { claim_ids: [second], reason: 'rain', refund: true });
    await world.carry();
    const { rows: owed } = await world.db2.query(
      `select id, amount::int from public.refunds_due where payment_key = 'stripe/pi_ned'`,
    );
    assert.deepEqual(owed, [{ id: `void:${second}`, amount: PRICE }]);
    assert.deepEqual(await tickets(), [first]);
    const refund = { id: 're_ned', object: 'refund', payment_intent: 'pi_ned', amount: 2 * PRICE };
    await world.db2.query(`select public.record_pulled('stripe', $1)`, [
      { ...refund, currency: 'eur', status: 'succeeded' },
    ]);
    await world.carry();
    assert.deepEqual(await tickets(), []);
    assert.equal(await status(), 'voided');
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
    const balance = `select sum(amount)::int from public.credit_ledger where object_id = 'pi_ned'`;
    assert.deepEqual((await world.db2.query(balance)).rows, [{ sum: 0 }]);
  });

  it('has a payment decided again of which one ticket was voided', async () => {
    const order = await world.bought('opera', 'quin', 'pi_quin', 2);
    const [first = '', second = ''] = order.claims;
    await world.post('/admin/claims/void', { claim_ids: [second], reason: 'rain' });
    await world.carry();
    await forget(order);
    const slot = (await world.db1.query('select slot_id from public.claims where claim_id = $1', [second]))
      .rows[0].slot_id;
    // The claim is held until the payment is settled, and its void is finished after that.
    const found = [`void_unfinished ${slot} fixed`, 'payment_unsettled stripe/pi_quin fixed'];
    assert.deepEqual(await reconcile('--fix'), { code: 0, found });
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
    await world.bridge();
    assert.deepEqual([await world.stateOf(first), await world.stateOf(second)], ['committed', 'voided']);
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
  });

  it('leaves a void of a held claim to the end of its hold where the payment went back', async () => {
    const order = await world.bought('opera', 'rex', 'pi_rex');
    const refund = {
      id: 're_rex',
      object: 'refund',
      payment_intent: 'pi_rex',
      amount: PRICE,
      currency: 'eur',
    };
    await world.db2.query(`select public.record_pulled('stripe', $1)`, [{ ...refund, status: 'succeeded' }]);
    await world.carry();
    await forget(order);
    const slot = (
      await world.db1.query('select slot_id from public.claims where claim_id = $1', [order.order_id])
    ).rows[0].slot_id;
    const left = `void_unfinished ${slot} for a person`;
    const found = [left, 'payment_unsettled stripe/pi_rex fixed'];
    assert.deepEqual(await reconcile('--fix'), { code: 1, found });
    assert.deepEqual(await reconcile('--fix'), { code: 1, found: [left] });
    assert.deepEqual(await decisions(order), ['stripe/pi_rex void']);
    await world.db1.query(
      `update public.orders set hold_until = now() - interval '1 hour', grace_until = now() - interval '1 hour'
       where order_id = $1`,
      [order.order_id],
    );
    await world.db1.query('select public.expire_holds()');
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
  });

  /** The intake as it was before the order was claimed: paid for, and not a ticket yet. */
  async function lose({ order_id, claims }: Order): Promise<void> {
    await world.db1.query(
      `with lost as (
         delete from public.claims where claim_id = any ($1) returning msg_id, slot_id
       ), free as (
         update public.inventory_slots s set status = 'AVAILABLE' from lost l where s.id = l.slot_id
       )
       delete from pgmq.q_intake_queue q using lost l where q.msg_id = l.msg_id`,
      [claims],
    );
    for (const table of ['orders', 'order_payments', 'checkouts'])
      await world.db1.query(`delete from public.${table} where order_id = $1`, [order_id]);
  }

  it('says of a payment that it waits where its order is lost', async () => {
    const order = await world.order('opera', 'sam');
    await world.pay(order, await world.checkout(order), 'pi_sam');
    await world.carry();
    await lose(order);
    const found = ['payment_unsettled stripe/pi_sam waits for its order'];
    assert.deepEqual(await reconcile('--fix'), { code: 1, found });
    await world.db2.query(
      `update public.claim_outbox set next_attempt_at = now() where payment_key = 'stripe/pi_sam'`,
    );
    await world.carry();
    assert.deepEqual(await decisions(order), ['stripe/pi_sam refund']);
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
  });

  it('reports what it did where payments cannot be settled, and fails', async () => {
    const order = await world.order('opera', 'tea');
    await world.pay(order, await world.checkout(order), 'pi_tea');
    await world.carry();
    await forget(order);
    await world.db2.query('alter function public.outbox_take rename to outbox_away');
    const { code, stdout, stderr } = await runHere(['reconcile', '--json', '--fix'], world.env);
    await world.db2.query('alter function public.outbox_away rename to outbox_take');
    const [{ kind, outcome }] = JSON.parse(stdout).differences;
    assert.deepEqual([code, kind, outcome], [1, 'payment_unsettled', 'not settled']);
    assert.match(
      stderr,
      /^error: payments could not be settled: .*outbox_take.*\nhint: run `sluice reconcile --fix` again/,
    );
    assert.deepEqual(await reconcile('--fix'), { code: 0, found: [] });
    assert.deepEqual(await decisions(order), ['stripe/pi_tea funds']);
  });

  it('leaves a payment undecided while its ticket is for a person', async () => {
    const { order_id } = await world.bought('opera', 'oli', 'pi_oli');
    const { rows } = await world.db1.query(
      'delete from public.claims where claim_id = $1 returning slot_id',
      [order_id],
    );
    for (const table of ['orders', 'order_payments', 'checkouts'])
      await world.db1.query(`delete from public.${table} where order_id = $1`, [order_id]);
    // Another buyer holds the seat, as at the moment to which the intake was restored.
    const { order_id: other } = await world.order('opera', 'pam');
    const [slot_id, own] = [
      rows[0].slot_id,
      (await world.db1.query('select slot_id from public.claims where claim_id = $1', [other])).rows[0]
        .slot_id,
    ];
    await world.db1.query('update public.claims set slot_id = $2 where claim_id = $1', [other, slot_id]);
    await world.db1.query(
      `update public.inventory_slots set status = case id when $1 then 'RESERVED' else 'AVAILABLE' end::public.slot_status
       where id in ($1, $2)`,
      [slot_id, own],
    );
    const found = [
      `ticket_of_another_claim ${slot_id} for a person`,
      'payment_unsettled stripe/pi_oli for a person',
    ];
    assert.deepEqual(await reconcile('--fix'), { code: 1, found });
    await world.carry();
    const owed = `select from public.refunds_due where payment_key = 'stripe/pi_oli'`;
    assert.equal((await world.db2.query(owed)).rowCount, 0);
    await world.db1.query(`select public.release_claim_as_operator($1, 'test', 'not paid')`, [other]);
    assert.deepEqual(await reconcile('--fix'), { code: 0, found: [`ticket_on_sale ${slot_id} fixed`] });
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
  });

  it('finds a decision that the intake lost, and has it decided again', async () => {
    await world.bought('opera', 'joe', 'pi_joe');
    await world.db1.query(`delete from public.order_payments where payment_key = 'stripe/pi_joe'`);
    assert.deepEqual(await reconcile(), { code: 1, found: ['payment_unsettled stripe/pi_joe found'] });
    assert.deepEqual(await reconcile('--fix'), { code: 0, found: ['payment_unsettled stripe/pi_joe fixed'] });
    await world.carry();
    const { rows } = await world.db1.query(
      `select decision from public.order_payments where payment_key = 'stripe/pi_joe'`,
    );
    assert.equal(rows.length, 1, 'it is decided again');
    const audit = await world.db2.query(
      `select reason from audit.audit_logs where action = 'payment_resettle' and subject = 'payment stripe/pi_joe'`,
    );
    assert.deepEqual(audit.rows, [{ reason: 'payment_unsettled' }]);
  });
});
