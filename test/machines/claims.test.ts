// Every step on the list of claims is taken by the functions that it names, and no other.

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { CLAIMS } from '../../tools/machines/claims.ts';
import { compare, type Step, stepsOf, told } from '../../tools/machines/machine.ts';
import { putOnSale } from '../server/support.ts';
import { useIntake } from '../support/suite.ts';
import { RECORDER, recording, takenSteps } from './recorder.ts';

type Claim = { claim_id: string; slot_id: string; pool_id: string; user_id: string };

describe('claims go the ways that are on the list', () => {
  const { session } = useIntake('session');
  let pools = 0;

  before(async () => {
    await session.client.query(RECORDER + recording(CLAIMS));
  });

  const run = (sql: string, values: unknown[] = []) => session.rows(sql, values);
  const newPool = async (): Promise<string> => {
    const pool = `machine_${++pools}`;
    await putOnSale(session.client, pool, 1);
    return pool;
  };
  const slotOf = (pool: string) =>
    session.value<string>('select id from public.inventory_slots where pool_id = $1', [pool]);
  const PAID = `update public.engine_config set confirm_by = 'payment', price = 10, currency = 'eur', hold_sec = 60,
    payment_tenant = 'stripe' where pool_id = $1`;
  const newHeld = async (by = 'claim_resource_and_queue'): Promise<Claim> => {
    const pool = await newPool();
    await run(PAID, [pool]);
    if (by === 'claim_batch')
      await run(`select * from public.claim_batch(array[$1], '{ann}', '{r1}')`, [pool]);
    else await run(`select public.claim_resource_and_queue($1, 'ann')`, [pool]);
    const [claim] = await session.rows<Claim>('select * from public.claims where pool_id = $1', [pool]);
    assert(claim !== undefined);
    return claim;
  };
  const orderOver = ({ claim_id }: Claim) =>
    run(`update public.orders set hold_until = now() - interval '1 minute' where order_id = $1`, [claim_id]);
  const factOf = ({ claim_id }: Claim) => ({
    payment_key: `stripe/pi_${claim_id}`,
    tenant: 'stripe',
    livemode: true,
    claim_id,
    user_id: 'ann',
    amount: 10,
    currency: 'eur',
  });
  const pay = (claim: Claim) => run('select * from public.settle_payment($1, false)', [factOf(claim)]);
  const finishVoid = ({ claim_id }: Claim) =>
    run(`select public.finish_void(array[$1::uuid], 'refunded')`, [claim_id]);
  const newClaim = async (): Promise<Claim> => {
    const pool = await newPool();
    await run(`select public.claim_resource_and_queue($1, 'ann')`, [pool]);
    const [claim] = await session.rows<Claim>('select * from public.claims where pool_id = $1', [pool]);
    assert(claim !== undefined);
    return claim;
  };
  /** The message of a claim in a worker's hands. A take changes no state. */
  const taken = async ({ pool_id }: Pick<Claim, 'pool_id'>): Promise<string> => {
    const [message] = await session.rows<{ msg_id: string }>(
      `update pgmq.q_intake_queue set read_ct = 1, vt = clock_timestamp() + interval '1 minute'
       where message ->> 'pool_id' = $1 returning msg_id`,
      [pool_id],
    );
    return message?.msg_id ?? '';
  };
  const finish = async (claim: Pick<Claim, 'pool_id'>, verdict: string) => {
    const msgId = await taken(claim);
    await run(`select * from public.bridge_finish($1, '{1}', $2, '{why}', '{0}')`, [[msgId], [verdict]]);
  };
  const letterOf = ({ pool_id }: Pick<Claim, 'pool_id'>) =>
    session.value<string>(`select msg_id from pgmq.q_intake_dlq where message ->> 'pool_id' = $1`, [pool_id]);
  const ticketOf = ({ claim_id, user_id }: Claim) => ({ claim_id, user_id });
  const fix = (slotId: string, kind: string, ticket: object | null = null) =>
    run(`select public.reconcile_fix($1, $2, 'test', $3)`, [slotId, kind, ticket]);

  const holdOver = ({ claim_id }: Claim) =>
    run(`update public.claims set hold_until = now() - interval '1 minute' where claim_id = $1`, [claim_id]);

  const discard = async (claim: Claim) =>
    run(`select * from public.discard_dead_letters(array[$1::bigint], 'test')`, [await letterOf(claim)]);
  const release = ({ claim_id }: Claim) => run(`select public.release_own_claim($1, 'ann')`, [claim_id]);
  const expire = async (claim: Claim) => {
    await holdOver(claim);
    await run('select public.expire_holds()');
  };
  const finishEnd = ({ claim_id }: Claim, outcome: string) =>
    run('select public.finish_ends(array[$1::uuid], array[$2])', [claim_id, outcome]);
  /** The claim is going to end this way, once the ledger knows. */
  const beginEnd = (claim: Claim, from: string, to: string) => {
    if (to === 'expired') return expire(claim);
    return from === 'dead_letter' ? discard(claim) : release(claim);
  };

  const ENDS: Record<string, (claim: Claim) => Promise<unknown>> = {
    queued: async () => undefined,
    validated: (claim) => finish(claim, 'validated'),
    committed: (claim) => finish(claim, 'committed'),
    refused: (claim) => finish(claim, 'refused'),
    dead_letter: (claim) => finish(claim, 'dead_letter'),
    released: release,
    expired: expire,
    async discarded(claim) {
      await finish(claim, 'dead_letter');
      await discard(claim);
      await finishEnd(claim, 'voided');
    },
  };
  const claimIn = async (state: string): Promise<Claim> => {
    if (state === 'held') return newHeld();
    const claim = await newClaim();
    await ENDS[state]?.(claim);
    return claim;
  };
  const validateFrom = (pool: string) =>
    run(
      `update public.engine_config set validation_webhook_url = 'https://example.com/' where pool_id = $1`,
      [pool],
    );

  /** How each function takes a claim along one of its steps. */
  const DRIVERS: Record<string, (step: Step & { from: string }) => Promise<unknown>> = {
    claim_resource_and_queue: ({ to }) => (to === 'held' ? newHeld() : newClaim()),
    claim_batch: async ({ to }) =>
      to === 'held'
        ? newHeld('claim_batch')
        : run(`select * from public.claim_batch(array[$1], '{ann}', '{r1}')`, [await newPool()]),
    async bridge_finish({ from, to }) {
      if (from !== null) return finish(await claimIn(from), to);
      const pool_id = await newPool();
      await byHand(pool_id);
      return finish({ pool_id }, to);
    },
    async intake_queue_delete({ from }) {
      const pool = from === null ? await newPool() : (await claimIn(from)).pool_id;
      if (from === null) await byHand(pool);
      await run(`update public.inventory_slots set status = 'CONSUMED' where pool_id = $1`, [pool]);
      return run('select public.intake_queue_delete(array[$1::bigint])', [await taken({ pool_id: pool })]);
    },
    async intake_route_to_dlq({ from }) {
      const claim = await claimIn(from);
      const body = { claim_id: claim.claim_id, pool_id: claim.pool_id, resource_id: claim.slot_id };
      return run('select public.intake_route_to_dlq($1, $2, 1)', [await taken(claim), body]);
    },
    async replay_dead_letters({ from, to }) {
      const claim = from === null ? { pool_id: await newPool() } : await claimIn(to);
      if (from === null) await byHand(claim.pool_id);
      await finish(claim, 'dead_letter');
      // Another buyer gets the slot of the message that was sent by hand.
      if (from === null) await run(`select public.claim_resource_and_queue($1, 'bob')`, [claim.pool_id]);
      if (from === null)
        await run('insert into public.inventory_slots (pool_id) values ($1)', [claim.pool_id]);
      return run(`select * from public.replay_dead_letters(array[$1::bigint], 'test')`, [
        await letterOf(claim),
      ]);
    },
    async finish_ends({ from, to }) {
      // What only its worker can do comes after the end has begun.
      const isLate =
        (from === 'dead_letter' && to === 'released') || (from === 'validated' && to === 'expired');
      const claim = await claimIn(isLate ? 'queued' : from);
      if (isLate || from !== 'dead_letter') await taken(claim);
      await beginEnd(claim, isLate ? 'queued' : from, to);
      if (isLate) await finish(claim, from);
      return finishEnd(claim, to === 'committed' ? 'ticket' : 'voided');
    },
    async settle_payment({ from }) {
      const claim = await newHeld();
      if (from === null) await orderOver(claim);
      if (from === null) await run('select public.expire_holds()');
      return pay(claim);
    },
    settle_payments: async () =>
      run('select * from public.settle_payments($1)', [JSON.stringify([factOf(await newHeld())])]),
    finish_void: async ({ from }) => finishVoid(await claimIn(from)),
    release_own_claim: async ({ from }) => (from === 'held' ? release(await newHeld()) : claimIn('released')),
    release_claim_as_operator: async ({ from }) =>
      run(`select public.release_claim_as_operator($1, 'test')`, [(await claimIn(from)).claim_id]),
    async expire_holds({ from, to }) {
      if (from !== 'held') return claimIn('expired');
      const claim = await newHeld();
      if (to === 'released')
        await run(`select * from public.begin_checkout($1, 'ann', 'http://localhost')`, [claim.claim_id]);
      if (to === 'released') await release(claim);
      await orderOver(claim);
      await run('update public.checkouts set state = $2 where order_id = $1', [claim.claim_id, 'expired']);
      return run('select public.expire_holds()');
    },
    async expire_due_holds({ from }) {
      const claim = await claimIn(from);
      await (from === 'held' ? orderOver(claim) : holdOver(claim));
      return run('call intake.expire_due_holds()');
    },
    async validation_begins({ from }) {
      const claim = await claimIn(from);
      await taken(claim);
      return validateFrom(claim.pool_id);
    },
    async pool_change({ from }) {
      const claim = await claimIn(from);
      await taken(claim);
      const rules = { validation_webhook_url: 'https://example.com/' };
      return run(`select * from public.pool_change($1, $2, 0, 'test')`, [claim.pool_id, rules]);
    },
    async reconcile_fix({ from, to }) {
      if (from === null) {
        const slot = await slotOf(await newPool());
        return fix(slot, 'ticket_without_claim', { claim_id: slot, user_id: 'ann' });
      }
      const claim = await claimIn(from);
      const { slot_id } = claim;
      if (to === 'voided') return fix(slot_id, 'void_unfinished', ticketOf(claim));
      if (to === 'committed') return fix(slot_id, 'ticket_without_claim', ticketOf(claim));
      if (to === 'validated') return fix(slot_id, 'claim_without_ticket');
      if (to === 'discarded')
        return fix(slot_id, 'ticket_of_another_claim', { claim_id: slot_id, user_id: 'bob' });
      if (to === 'expired') {
        const { claim_id: order_id } = claim;
        const purchase = { ...factOf(claim), order_id, seats: 1, reason: 'late', is_own: true };
        return fix(slot_id, 'ticket_of_another_claim', { claim_id: slot_id, user_id: 'ann', purchase });
      }
      await run('delete from pgmq.q_intake_dlq where msg_id = $1', [await letterOf(claim)]);
      return fix(slot_id, 'claim_without_message');
    },
  };
  const byHand = async (pool: string) =>
    run('select public.intake_queue_send($1)', [
      { pool_id: pool, resource_id: await slotOf(pool), user_id: 'ann', state: 'queued' },
    ]);

  for (const step of stepsOf(CLAIMS))
    it(told(step), async () => {
      const drive = DRIVERS[step.by];
      assert(drive !== undefined, `this test does not know ${step.by}`);
      await drive(step as Step & { from: string });
      assert((await takenSteps(session.rows)).map(told).includes(told(step)), 'it was not taken');
    });

  it('and no others', async () => {
    assert.deepEqual(compare(CLAIMS, await takenSteps(session.rows)), { unknown: [], untaken: [] });
  });

  it('and a statement that goes another way is noticed', async () => {
    const { claim_id } = await claimIn('released');
    await run(`update public.claims set state = 'expired' where claim_id = $1`, [claim_id]);
    assert.deepEqual(compare(CLAIMS, await takenSteps(session.rows)).unknown, [
      'released → expired by a plain statement',
    ]);
  });
});
