import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runHere } from '../cli/support.ts';
import { HandWorld } from './hand_world.ts';

describe('sluice orders, refunds and claims void', () => {
  let world: HandWorld;
  before(async () => {
    world = await HandWorld.start();
    await world.putOnSale('opera', 20);
  });
  after(() => world?.stop());

  const run = (...words: string[]) => runHere(words, world.env);

  it('list orders and show one as a timeline, by a payment', async () => {
    const { order_id } = await world.bought('opera', 'ann', 'pi_ann', 2);
    const held = await world.order('opera', 'bob');
    const list = await run('orders', 'list', '--pool', 'opera');
    assert.equal(list.code, 0, list.stderr);
    assert.match(list.stdout, new RegExp(`^${order_id} +opera +ann +paid +2 +EUR 50\\.00 `, 'm'));
    const json = await run('orders', 'list', '--status', 'held', '--json');
    assert.deepEqual(
      JSON.parse(json.stdout).items.map((one: { order_id: string }) => one.order_id),
      [held.order_id],
    );
    const shown = await run('orders', 'show', 'pi_ann');
    assert.equal(shown.code, 0, shown.stderr);
    assert.match(shown.stdout, /^amount +EUR 50\.00, 2 × EUR 25\.00$/m);
    assert.match(shown.stdout, / committed +valid$/m);
    assert.match(shown.stdout, / decided_funds +/);
    const missing = await run('orders', 'show', 'pi_none');
    assert.deepEqual([missing.code, missing.stderr], [1, 'No order has the claim or payment pi_none.\n']);
    const empty = await run('orders', 'list', '--pool', 'nowhere');
    assert.equal(empty.stdout, 'No such orders.\n');
  });

  it('send and skip refunds, with the plan alone where it is a dry run', async () => {
    const order = await world.bought('opera', 'eva', 'pi_eva');
    const link = { metadata: { claim_id: order.order_id, user_id: 'eva', verified: 'false' } };
    await world.pay(order, 'cs_link', 'pi_eva_2', link);
    await world.carry();
    const id = 'settle:stripe/pi_eva_2';
    const list = await run('refunds', 'list', '--state', 'review');
    assert.match(
      list.stdout,
      new RegExp(`^${id} +review +EUR 25\\.00 +second_payment +stripe/pi_eva_2 `, 'm'),
    );
    const dry = await run('refunds', 'send', id, '--dry-run', '--json');
    assert.deepEqual([dry.code, JSON.parse(dry.stdout)], [0, { results: [{ id, outcome: 'would_send' }] }]);
    const asked = await run('refunds', 'send', id);
    assert.equal(asked.code, 2, 'it has no terminal to ask at');
    assert.match(asked.stderr, /Send this refund\? The money goes back\. Add --yes/);
    const sent = await run('refunds', 'send', id, '--yes', '--reason', 'she asked');
    assert.deepEqual([sent.code, sent.stdout], [0, `REFUND                  OUTCOME\n${id}  due\n`]);
    const again = await run('refunds', 'skip', id, '--yes');
    assert.match(again.stdout, /unchanged/);
    assert.equal(again.code, 1);
    const shown = await run('refunds', 'show', id);
    assert.match(shown.stdout, /^state +due$/m);
    const none = await run('refunds', 'show', 'void:none');
    assert.deepEqual([none.code, none.stderr], [1, 'The refund void:none does not exist.\n']);
    const { rows } = await world.db2.query(
      `select actor, reason from audit.audit_logs where action = 'refund_send'`,
    );
    assert.deepEqual(rows, [{ actor: 'admin', reason: 'she asked' }]);
  });

  it('void needs a reason but for a dry run, shows its plan, and waits for the courier', async () => {
    const order = await world.bought('opera', 'fay', 'pi_fay');
    const id = order.order_id;
    const bare = await run('claims', 'void', id);
    assert.deepEqual([bare.code, /needs a --reason/.test(bare.stderr)], [2, true]);
    const dry = await run('claims', 'void', id, '--dry-run');
    assert.match(dry.stdout, new RegExp(`^${id}  would_void$`, 'm'));
    const asked = await run('claims', 'void', id, '--reason', 'rain', '--refund');
    assert.match(asked.stderr, /would_void[\s\S]*Void this claim and pay back what they cost\?/);
    // The courier comes while the command waits.
    const [done] = await Promise.all([
      run('claims', 'void', id, '--reason', 'rain', '--refund', '--yes', '--json'),
      world.carryUntil(() => world.stateOf(id), 'voided'),
    ]);
    assert.deepEqual(
      [done.code, JSON.parse(done.stdout)],
      [0, { results: [{ claim_id: id, outcome: 'voided' }] }],
    );
    const again = await run('claims', 'void', id, '--reason', 'rain', '--yes');
    assert.deepEqual([again.code, /already_voided/.test(again.stdout)], [1, true]);
    const { stdout } = await run('orders', 'show', id, '--json');
    assert.equal(JSON.parse(stdout).order.status, 'voided');
  });
});
