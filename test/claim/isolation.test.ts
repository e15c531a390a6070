// A transaction with an older snapshot does not see what ended after it began: it would declare a pool sold out that has a
// free slot, and count a user's claims wrong. Claim, release and expire refuse such a transaction by name.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { useIntake } from '../support/suite.ts';

const WRONG_ISOLATION = { code: 'SL015' };
const USERS = 20;
/** Enough for each of the 64 stripes in which a single claim looks for a slot. */
const SLOTS = 2048;

describe('a transaction that is not read committed', () => {
  const { observer, old } = useIntake('observer', 'old');

  const begin = async (level: string) => {
    await old.client.query(`begin isolation level ${level}`);
    await old.rows('select from public.claims limit 1');
  };
  const held = (pool: string) =>
    observer.value<number>(
      'select count(*)::int from public.claims where pool_id = $1 and freed_at is null',
      [pool],
    );

  for (const level of ['repeatable read', 'serializable']) {
    const name = level.replace(' ', '_');

    test(`does not leave a pool sold out that has a free slot (${level})`, async () => {
      const pool = `${name}_free`;
      await putOnSale(observer.client, pool, 1);
      await observer.claim(pool, 'ann');
      await begin(level);
      const claimId = await observer.value('select claim_id from public.claims where pool_id = $1', [pool]);
      await observer.rows(`select * from public.release_own_claim($1, 'ann')`, [claimId]);
      await old.claim(pool, 'bob').catch(() => undefined);
      await old.client.query('commit');
      assert.notEqual(await observer.claim(pool, 'cyd'), null);
    });

    test(`does not give a user more than the pool allows (${level})`, async () => {
      const pool = `${name}_limit`;
      await putOnSale(observer.client, pool, SLOTS);
      await observer.rows('update public.engine_config set max_per_user = 1 where pool_id = $1', [pool]);
      for (let user = 0; user < USERS; user++) {
        await begin(level);
        await observer.claim(pool, `user ${user}`);
        await old.claim(pool, `user ${user}`).catch(() => undefined);
        await old.client.query('commit');
      }
      assert.equal(await held(pool), USERS);
    });

    test(`is refused by name, and changes nothing (${level})`, async () => {
      const pool = `${name}_refused`;
      await putOnSale(observer.client, pool, 3);
      await observer.claim(pool, 'ann');
      const claimId = await observer.value<string>('select claim_id from public.claims where pool_id = $1', [
        pool,
      ]);
      await observer.rows(
        `update public.claims set hold_until = now() - interval '1 hour' where claim_id = $1`,
        [claimId],
      );
      const asked: Record<string, () => Promise<unknown>> = {
        claim: () => old.claim(pool, 'bob'),
        batch: () => old.batch([{ pool, user: 'bob' }]),
        release: () => old.rows(`select * from public.release_own_claim($1, 'ann')`, [claimId]),
        'release as operator': () =>
          old.rows(`select * from public.release_claim_as_operator($1, 'olga')`, [claimId]),
        expire: () => old.rows('select public.expire_holds()'),
        checkout: () => old.rows(`select public.begin_checkout($1, 'ann', 'https://example.com')`, [claimId]),
        close: () => old.rows(`select public.close_checkout($1, 1, null, 'expired', null)`, [claimId]),
        settle: () => old.rows(`select public.settle_payment('{}', false)`),
        'settle many': () => old.rows(`select public.settle_payments('[]')`),
        'void targets': () => old.rows('select public.void_targets(null, array[$1::uuid])', [claimId]),
        'finish a void': () => old.rows(`select public.finish_void(array[$1::uuid], 'x')`, [claimId]),
      };
      for (const [what, ask] of Object.entries(asked)) {
        await begin(level);
        await assert.rejects(ask(), WRONG_ISOLATION, what);
        await old.client.query('rollback');
      }
      assert.equal(await held(pool), 1);
      assert.equal(
        await observer.value('select state from public.claims where claim_id = $1', [claimId]),
        'queued',
      );
    });
  }

  test('may also come from a default, and is refused all the same', async () => {
    await putOnSale(observer.client, 'by_default', 1);
    await old.client.query(`set default_transaction_isolation = 'serializable'`);
    await assert.rejects(old.claim('by_default', 'ann'), WRONG_ISOLATION);
    await old.client.query('reset default_transaction_isolation');
    assert.notEqual(await old.claim('by_default', 'ann'), null);
  });
});
