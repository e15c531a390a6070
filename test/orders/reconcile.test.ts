// `sluice reconcile` after the intake was restored to an earlier moment: voids that it forgot, decisions that it lost.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runHere } from '../cli/support.ts';
import { HandWorld } from './hand_world.ts';

describe('reconcile of orders', () => {
  let world: HandWorld;
  before(async () => {
    world = await HandWorld.start();
    await world.putOnSale('opera', 10);
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
      `select reason from audit.audit_logs where action = 'payment_resettle'`,
    );
    assert.deepEqual(audit.rows, [{ reason: 'payment_unsettled' }]);
  });
});
