// "Sold out" is never a lie: not while the last slot may come back, not while one comes back at this moment.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { ASKING, askUntilAnswered, interleave, waitsFor } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';

describe('sold out', () => {
  const { observer, changer, looker, third } = useIntake('observer', 'changer', 'looker', 'third');
  let pools = 0;

  const newPool = async (slots: number) => {
    const pool = `sold_out_${++pools}`;
    await putOnSale(observer.client, pool, slots);
    return pool;
  };
  const isDeclared = (pool: string) =>
    observer.value<boolean>('select sold_out from intake.pool_marks where pool_id = $1', [pool]);

  for (const holder of ['single', 'batch'] as const) {
    const lastSlotInFlight = (pool: string, end: 'commit' | 'rollback') =>
      interleave(
        observer,
        { session: changer, run: () => ASKING[holder](changer, pool, 'first'), end },
        { session: looker, run: () => looker.claim(pool, 'second') },
      );

    test(`waits for the claimer of the last slot, which is free again after a rollback (${holder})`, async () => {
      const pool = await newPool(1);
      const answers = await lastSlotInFlight(pool, 'rollback');
      assert.equal(answers.second, answers.first.slot);
    });

    test(`waits for the claimer of the last slot, and is true after a commit (${holder})`, async () => {
      const pool = await newPool(1);
      assert.equal((await lastSlotInFlight(pool, 'commit')).second, null);
      assert.equal(await isDeclared(pool), true);
    });

    test(`is not what a batch answers while the last slot is in flight: that is busy (${holder})`, async () => {
      const pool = await newPool(1);
      await changer.client.query('begin');
      await ASKING[holder](changer, pool, 'first');
      assert.equal((await ASKING.batch(looker, pool, 'second')).outcome, 'busy');
      await changer.client.query('rollback');
      assert.equal((await ASKING.batch(looker, pool, 'second')).outcome, 'claimed');
    });
  }

  /** Ways in which a slot comes on sale: what has to be so before, and the change itself. */
  const changes: Record<
    string,
    { slots: number; prepare(pool: string): Promise<unknown>; run(pool: string): Promise<unknown> }
  > = {
    'a release': {
      slots: 1,
      prepare: (pool) => observer.claim(pool, 'owner'),
      run: (pool) =>
        changer.value('select intake.give_back_claim(c.claim_id) from public.claims c where c.pool_id = $1', [
          pool,
        ]),
    },
    'an expiry': {
      slots: 1,
      prepare: async (pool) => {
        await observer.claim(pool, 'owner');
        await observer.client.query(
          `update public.claims set hold_until = now() - interval '1 second' where pool_id = $1`,
          [pool],
        );
      },
      run: async () => assert.equal(await changer.value('select public.expire_holds()'), 1),
    },
    'a reaped orphan': {
      slots: 1,
      prepare: (pool) =>
        observer.client.query(
          `update public.inventory_slots set status = 'RESERVED', locked_at = now() - interval '1 hour'
           where pool_id = $1`,
          [pool],
        ),
      run: async () => assert.equal(await changer.value('select public.reap_orphaned_slots()'), 1),
    },
    'an insert': {
      slots: 1,
      prepare: (pool) => observer.claim(pool, 'owner'),
      run: (pool) => changer.client.query('insert into public.inventory_slots (pool_id) values ($1)', [pool]),
    },
  };

  for (const [what, change] of Object.entries(changes)) {
    const soldPool = async () => {
      const pool = await newPool(change.slots);
      await change.prepare(pool);
      return pool;
    };

    for (const end of ['commit', 'rollback'] as const) {
      test(`is not what a batch answers over ${what} in flight: that is busy, and after its ${end} the truth`, async () => {
        const pool = await soldPool();
        const look = () => ASKING.batch(looker, pool, 'looker');
        await changer.client.query('begin');
        await change.run(pool);
        assert.equal((await look()).outcome, 'busy');
        await changer.client.query(end);
        assert.equal((await look()).outcome, end === 'commit' ? 'claimed' : 'sold_out');
        // Later tests look at the whole database for holds and orphans.
        if (end === 'rollback') await change.run(pool);
      });
    }

    test(`is taken back by ${what} that came while a batch was declaring it`, async () => {
      const pool = await soldPool();
      const look = () => ASKING.batch(looker, pool, 'looker');
      const { first } = await interleave(
        observer,
        { session: looker, run: look, end: 'commit' },
        { session: changer, run: () => change.run(pool) },
      );
      assert.equal(first.outcome, 'sold_out');
      assert.equal((await askUntilAnswered(look)).outcome, 'claimed');
    });

    {
      const look = (pool: string) => ASKING.single(looker, pool, 'looker');

      test(`is not declared over ${what} that is about to commit`, async () => {
        const pool = await soldPool();
        const { second } = await interleave(
          observer,
          { session: changer, run: () => change.run(pool), end: 'commit' },
          { session: looker, run: () => look(pool) },
        );
        assert.notEqual(second.outcome, 'sold_out');
        assert.equal(
          (await askUntilAnswered(() => look(pool))).outcome,
          second.slot ? 'sold_out' : 'claimed',
        );
      });

      test(`is true when ${what} was rolled back`, async () => {
        const pool = await soldPool();
        const { second } = await interleave(
          observer,
          { session: changer, run: () => change.run(pool), end: 'rollback' },
          { session: looker, run: () => look(pool) },
        );
        assert.equal(second.outcome, 'sold_out');
        // Later tests look at the whole database for holds and orphans.
        await change.run(pool);
      });

      test(`is taken back by ${what} that came while it was being declared`, async () => {
        const pool = await soldPool();
        const { first } = await interleave(
          observer,
          { session: looker, run: () => look(pool), end: 'commit' },
          { session: changer, run: () => change.run(pool) },
        );
        assert.equal(first.outcome, 'sold_out');
        assert.equal((await askUntilAnswered(() => look(pool))).outcome, 'claimed');
      });

      // A third session holds the mark, so that both stand in line for it: the change is then made and not yet told.
      for (const order of ['the change', 'the declaration'] as const) {
        test(`meets ${what} at the mark, ${order} first`, async () => {
          const pool = await soldPool();
          await third.client.query('begin');
          await third.client.query('select from intake.pool_marks where pool_id = $1 for update', [pool]);
          const ask = () => ({ session: looker, done: look(pool) });
          const alter = () => ({ session: changer, done: change.run(pool) });
          const ahead = order === 'the change' ? alter() : ask();
          await waitsFor(observer, ahead.session, third);
          const behind = order === 'the change' ? ask() : alter();
          await waitsFor(observer, behind.session, ahead.session);
          await third.client.query('commit');
          await Promise.all([ahead.done, behind.done]);
          const answer = (await (order === 'the change' ? behind.done : ahead.done)) as { outcome: string };
          if (order === 'the change') assert.notEqual(answer.outcome, 'sold_out');
          const after = await askUntilAnswered(() => look(pool));
          assert.equal(after.outcome, answer.outcome === 'claimed' ? 'sold_out' : 'claimed');
        });
      }
    }
  }

  test('is answered at once, without a lock, after it was declared', async () => {
    const pool = await newPool(1);
    await observer.claim(pool, 'owner');
    assert.equal(await looker.claim(pool, 'too late'), null);
    await changer.client.query('begin');
    await changer.client.query('select from intake.pool_marks where pool_id = $1 for update', [pool]);
    try {
      assert.equal(await looker.claim(pool, 'too late'), null);
      assert.equal((await ASKING.batch(looker, pool, 'too late')).outcome, 'sold_out');
    } finally {
      await changer.client.query('rollback');
    }
  });
});
