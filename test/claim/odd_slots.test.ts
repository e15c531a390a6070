// Slots that a person has put in an odd place, and slots that many want at once.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { ASKING, type Session, waitsFor } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';

describe('a slot', () => {
  const { observer, first, second } = useIntake('observer', 'first', 'second');

  const loseTheCache = () => observer.client.query('truncate public.inventory_slots');
  const releaseOf = async (session: Session, pool: string, user: string) => {
    const claimId = await observer.value<string>(
      'select claim_id from public.claims where pool_id = $1 and user_id = $2 and freed_at is null',
      [pool, user],
    );
    return session.rows('select * from public.release_own_claim($1, $2)', [claimId, user]);
  };

  for (const kind of ['single', 'batch'] as const)
    test(`with a negative place in the line is sold after a rebuild too (${kind})`, async () => {
      const pool = `negative_${kind}`;
      await observer.rows(
        'insert into public.inventory_slots (pool_id, sale_order) select $1, o from unnest(array[5, -3, -7]) o',
        [pool],
      );
      await loseTheCache();
      const outcomes: string[] = [];
      for (const user of ['a', 'b', 'c', 'd'])
        outcomes.push((await ASKING[kind](observer, pool, user)).outcome);
      assert.deepEqual(outcomes, ['claimed', 'claimed', 'claimed', 'sold_out']);
    });

  for (const steps of ['lose, rebuild, release', 'lose, release, rebuild', 'release, lose, rebuild'])
    test(`that was withdrawn while a claim held it stays withdrawn: ${steps}`, async () => {
      const pool = `withdrawn: ${steps}`;
      const doing: Record<string, () => Promise<unknown>> = {
        lose: loseTheCache,
        rebuild: () => observer.rows('select intake.rebuild_inventory($1)', [pool]),
        release: () => releaseOf(observer, pool, 'ann'),
      };
      await putOnSale(observer.client, pool, 1);
      const held = await observer.claim(pool, 'ann');
      await observer.rows('insert into public.inventory_slots (pool_id) values ($1)', [pool]);
      await observer.rows('delete from public.inventory_slots where id = $1', [held]);
      for (const step of steps.split(', ')) {
        await doing[step]?.();
        assert.deepEqual(
          await observer.rows(
            `select status from public.inventory_slots where id = $1 and status = 'AVAILABLE'`,
            [held],
          ),
          [],
          step,
        );
      }
      assert.notEqual(await observer.claim(pool, 'bob'), held);
      assert.equal(await observer.claim(pool, 'cyd'), null, 'the other slot was the only one');
      assert.deepEqual(
        await observer.rows('select slot_id from public.slot_manifest where slot_id = $1', [held]),
        [],
        'and it has left the manifest',
      );
      assert.equal(
        await observer.value('select slots::int from intake.pool_totals where pool_id = $1', [pool]),
        1,
        'and the capacity',
      );
    });

  test('that comes back while a single claim looks for one is waited for, not answered busy', async () => {
    const pool = 'waited_for';
    await putOnSale(observer.client, pool, 1);
    await observer.claim(pool, 'ann');
    // The claim sees the pool open and no slot free; then the slot comes back, before it has the mark.
    await observer.rows('update intake.pool_marks set sold_out = false where pool_id = $1', [pool]);
    await first.client.query('begin');
    await releaseOf(first, pool, 'ann');
    const claiming = ASKING.single(second, pool, 'bob');
    await waitsFor(observer, second, first);
    await first.client.query('commit');
    assert.equal((await claiming).outcome, 'claimed');
  });

  test('that two buyers claim and give back in turn is never busy for the one who may wait', async () => {
    const pool = 'churn';
    await putOnSale(observer.client, pool, 1);
    const seen = new Set<string>();
    const churn = async (session: Session, user: string) => {
      for (let round = 0; round < 100; round++) {
        const { outcome } = await ASKING.single(session, pool, user);
        seen.add(outcome);
        if (outcome === 'claimed') await releaseOf(session, pool, user);
      }
    };
    await Promise.all([churn(first, 'ann'), churn(second, 'bob')]);
    assert.ok(!seen.has('busy'), [...seen].join(', '));
  });
});
