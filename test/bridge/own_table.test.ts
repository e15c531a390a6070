// A commit function written to the requirement's table, which has no claim_id: its claims are committed, and both databases
// agree on who has which slot.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { compareSlot, type SlotRow, type TicketRow } from '#core/reconcile.ts';
import { FaultWorld } from './fault_support.ts';

let world: FaultWorld;

before(async () => {
  world = await FaultWorld.start();
  await world.db2.query(`
    create function public.record_sale(p_payload jsonb) returns void language sql as $$
      insert into confirmed_tickets (resource_id, pool_id, user_id)
      values ((p_payload ->> 'resource_id')::uuid, p_payload ->> 'pool_id', p_payload ->> 'user_id')
      on conflict (resource_id) do nothing
    $$`);
});
after(() => world.stop());

async function differences(): Promise<string[]> {
  const slots = await world.db1.query<SlotRow>('select * from public.reconcile_claims(null, 1000)');
  const tickets = await world.db2.query<TicketRow>('select * from public.tickets_page(null, 1000)');
  return slots.rows.flatMap((slot) =>
    compareSlot(
      slot,
      tickets.rows.find(({ slot_id }) => slot_id === slot.slot_id),
    ).map(({ kind }) => kind),
  );
}

test('a commit function that knows resource_id, pool_id and user_id commits every claim', async () => {
  await world.sell('sales', ['ann', 'bob', 'cyd'], { commit_rpc_name: 'record_sale' });
  await world.drain();
  const states = await world.db1.query(
    `select user_id, state, committed_by from public.claims where pool_id = 'sales' order by 1`,
  );
  assert.deepEqual(
    states.rows,
    ['ann', 'bob', 'cyd'].map((user_id) => ({
      user_id,
      state: 'committed',
      committed_by: 'function:record_sale',
    })),
  );
  assert.equal(await world.count2(`select count(*) from confirmed_tickets where pool_id = 'sales'`), 3);
  assert.deepEqual(await differences(), [], 'and reconcile finds nothing to mend');
});

test('a worker that died after such a commit leaves a claim that ends as committed when its attempts are used up', async () => {
  await world.sell('late', ['ann'], { commit_rpc_name: 'record_sale', max_retries: 1 });
  await world.db2.query(
    `select public.record_sale(jsonb_build_object('resource_id', $1::text, 'pool_id', 'late', 'user_id', 'ann'))`,
    [(await world.db1.query(`select slot_id from public.claims where pool_id = 'late'`)).rows[0].slot_id],
  );
  await world.drain();
  assert.equal(
    await world.count1(`select count(*) from public.claims where pool_id = 'late' and state = 'committed'`),
    1,
  );
});

test('another user’s unnamed ticket in a slot is still a difference', async () => {
  await world.sell('taken', ['ann'], {});
  await world.db2.query(
    `insert into confirmed_tickets (resource_id, pool_id, user_id) values ($1, 'taken', 'eve')`,
    [(await world.db1.query(`select slot_id from public.claims where pool_id = 'taken'`)).rows[0].slot_id],
  );
  await world.drain();
  assert.equal(
    await world.count1(
      `select count(*) from public.claims where pool_id = 'taken' and state = 'dead_letter'`,
    ),
    1,
  );
  assert.deepEqual(await differences(), ['ticket_of_another_claim']);
});
