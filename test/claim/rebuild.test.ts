// The slot cache is lost (TRUNCATE does to it by hand what a crash does) and comes back while others work on it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { ASKING, interleave, type Session } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';

const SLOTS = 10;
const MANY_SLOTS = 100_000;
const MANY_CLAIMS = 50_000;

describe('the rebuild of a lost slot cache', () => {
  const { observer, first, second } = useIntake('observer', 'first', 'second');
  let pools = 0;

  const loseTheCache = () => observer.client.query('truncate public.inventory_slots');
  const newPool = async () => {
    const pool = `rebuild_${++pools}`;
    await putOnSale(observer.client, pool, SLOTS);
    return pool;
  };
  const states = async (pool: string) => {
    const rows = await observer.rows<{ status: string; slots: number }>(
      'select status, count(*)::int as slots from public.inventory_slots where pool_id = $1 group by 1',
      [pool],
    );
    return Object.fromEntries(rows.map(({ status, slots }) => [status, slots]));
  };
  const release = (session: Session, pool: string) =>
    session.value<string>(
      `select (intake.give_back_claim(c.claim_id)).state from public.claims c
       where c.pool_id = $1 and c.user_id = 'owner'`,
      [pool],
    );
  const insertSlots = (session: Session, pool: string) =>
    session.client.query(
      'insert into public.inventory_slots (pool_id) select $1 from generate_series(1, 5)',
      [pool],
    );

  for (const firstKind of ['single', 'batch'] as const) {
    for (const end of ['commit', 'rollback'] as const) {
      test(`is done by one of two claimers, the other waits and both sell (${firstKind}, ${end})`, async () => {
        const pool = await newPool();
        await loseTheCache();
        const answers = await interleave(
          observer,
          { session: first, run: () => ASKING[firstKind](first, pool, 'one'), end },
          { session: second, run: () => ASKING.single(second, pool, 'two') },
        );
        assert.equal(answers.first.outcome, 'claimed');
        assert.equal(answers.second.outcome, 'claimed');
        if (end === 'commit') assert.notEqual(answers.second.slot, answers.first.slot);
        const sold = end === 'commit' ? 2 : 1;
        assert.deepEqual(await states(pool), { AVAILABLE: SLOTS - sold, RESERVED: sold });
      });
    }
  }

  test('holds up a release, which then frees its slot', async () => {
    const pool = await newPool();
    await observer.claim(pool, 'owner');
    await loseTheCache();
    const { second: state } = await interleave(
      observer,
      { session: first, run: () => first.claim(pool, 'buyer'), end: 'commit' },
      { session: second, run: () => release(second, pool) },
    );
    assert.equal(state, 'released');
    assert.deepEqual(await states(pool), { AVAILABLE: SLOTS - 1, RESERVED: 1 });
  });

  for (const [end, free] of [
    ['commit', SLOTS - 1],
    ['rollback', SLOTS - 2],
  ] as const) {
    test(`waits for a release under way and believes its ${end}`, async () => {
      const pool = await newPool();
      await observer.claim(pool, 'owner');
      await loseTheCache();
      await interleave(
        observer,
        { session: first, run: () => release(first, pool), end },
        { session: second, run: () => second.claim(pool, 'buyer') },
      );
      assert.deepEqual(await states(pool), { AVAILABLE: free, RESERVED: SLOTS - free });
    });

    test(`waits for an insert of slots under way and believes its ${end}`, async () => {
      const pool = await newPool();
      await loseTheCache();
      await interleave(
        observer,
        { session: first, run: () => insertSlots(first, pool), end },
        { session: second, run: () => second.claim(pool, 'buyer') },
      );
      const all = end === 'commit' ? SLOTS + 5 : SLOTS;
      assert.deepEqual(await states(pool), { AVAILABLE: all - 1, RESERVED: 1 });
    });
  }

  test('holds up an insert of slots, which then adds to it', async () => {
    const pool = await newPool();
    await loseTheCache();
    await interleave(
      observer,
      { session: first, run: () => first.claim(pool, 'buyer'), end: 'commit' },
      { session: second, run: () => insertSlots(second, pool) },
    );
    assert.deepEqual(await states(pool), { AVAILABLE: SLOTS + 4, RESERVED: 1 });
  });

  test(`brings back ${MANY_SLOTS} slots with ${MANY_CLAIMS} claims, each in its right state`, async () => {
    const pool = 'many';
    await putOnSale(observer.client, pool, MANY_SLOTS);
    // A fifth of the claims each: on the way twice, ticket, dead letter, given back.
    await observer.client.query(
      `insert into public.claims (claim_id, pool_id, slot_id, user_id, state, freed_at)
       select gen_random_uuid(), $1, s.slot_id, 'owner', s.state, case s.state when 'released' then now() end
       from (
         select m.slot_id,
           (array['queued', 'validated', 'committed', 'dead_letter', 'released']::public.claim_state[])
             [1 + row_number() over (order by m.sale_order) % 5] as state
         from public.slot_manifest m where m.pool_id = $1 order by m.sale_order limit $2
       ) s`,
      [pool, MANY_CLAIMS],
    );
    // The last slot is held by a message that was put on the queue by hand.
    await observer.client.query(
      `select public.intake_queue_send(jsonb_build_object('pool_id', $1::text, 'user_id', 'hand', 'resource_id', (
         select m.slot_id from public.slot_manifest m where m.pool_id = $1 order by m.sale_order desc limit 1)))`,
      [pool],
    );
    await loseTheCache();
    assert.notEqual(await first.claim(pool, 'buyer'), null);
    const fifth = MANY_CLAIMS / 5;
    const reserved = 3 * fifth + 2;
    assert.deepEqual(await states(pool), {
      AVAILABLE: MANY_SLOTS - fifth - reserved,
      RESERVED: reserved,
      CONSUMED: fifth,
    });
    const wrongOwners = await observer.value<number>(
      `select count(*)::int from public.inventory_slots s join public.claims c on c.slot_id = s.id
       where s.pool_id = $1 and c.freed_at is null and s.locked_by is distinct from c.user_id`,
      [pool],
    );
    assert.equal(wrongOwners, 0);
  });
});
