// Two operators who give one pool its first rules at the same moment.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { interleave, type Session } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';

describe('the first change of a pool that has only slots', () => {
  const { observer, first, second } = useIntake('observer', 'first', 'second');

  const change = (session: Session, pool: string, rules: object) =>
    session.rows(`select max_per_user, hold_sec from public.pool_change($1, $2, 0, 'olga')`, [pool, rules]);

  for (const end of ['commit', 'rollback'] as const) {
    test(`waits for another first change, and holds whatever that ends with: ${end}`, async () => {
      const pool = `bare_${end}`;
      await observer.rows('insert into public.inventory_slots (pool_id) values ($1)', [pool]);
      const answers = await interleave(
        observer,
        { session: first, run: () => change(first, pool, { max_per_user: 2 }), end },
        { session: second, run: () => change(second, pool, { hold_sec: 9 }) },
      );
      assert.deepEqual(answers.first, [{ max_per_user: 2, hold_sec: null }]);
      assert.deepEqual(answers.second, [{ max_per_user: end === 'commit' ? 2 : null, hold_sec: 9 }]);
    });
  }

  test('is refused where there is neither a row nor a slot', async () => {
    await assert.rejects(change(first, 'nowhere', {}), { code: 'SL002' });
  });
});
