// A transaction that frees slots of several pools takes their marks in one order. Every other transaction that needs a mark,
// a total, a message or a user's lock takes them in the same order. Each test holds a gate until both transactions have come
// as far as they can: in a wrong order one of them ends as a deadlock (40P01), every time.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { type Session, waitsFor } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';

describe('two transactions that free slots', () => {
  const { observer, gate, first, second } = useIntake('observer', 'gate', 'first', 'second');
  let rounds = 0;

  /** Two pools, in the order of their names, with claims of these users in each. */
  const newPools = async (users: string[], spare = 0): Promise<[string, string]> => {
    const pools: [string, string] = [`order_${++rounds}_a`, `order_${rounds}_b`];
    for (const pool of pools) {
      await putOnSale(observer.client, pool, users.length + spare);
      for (const user of users) await observer.claim(pool, user);
    }
    return pools;
  };
  /** Waits until `session` waits for one of the others, or has ended. */
  const isStuck = (session: Session, work: Promise<unknown>) =>
    Promise.race([
      work.then(
        () => undefined,
        () => undefined,
      ),
      ...[gate, first, second]
        .filter((other) => other !== session)
        .map((other) => waitsFor(observer, session, other).catch(() => undefined)),
    ]);
  /** Both run into what `gate` has locked by `lock`, `one` before `other`, and then go on. */
  const bothBehind = async (
    lock: string,
    pool: string,
    one: () => Promise<unknown>,
    other: () => Promise<unknown>,
  ): Promise<void> => {
    await gate.client.query('begin');
    await gate.rows(lock, [pool]);
    const works = [one()];
    await isStuck(first, works[0] as Promise<unknown>);
    works.push(other());
    await isStuck(second, works[1] as Promise<unknown>);
    await gate.client.query('commit');
    const ends = await Promise.allSettled(works);
    assert.deepEqual(
      ends.map((end) => (end.status === 'rejected' ? String(end.reason) : 'done')),
      ['done', 'done'],
    );
  };
  const MARK = 'select from intake.pool_marks where pool_id = $1 for update';
  const free = (pool: string) =>
    observer.value<number>(
      `select count(*)::int from public.inventory_slots where pool_id = $1 and status = 'AVAILABLE'`,
      [pool],
    );
  const takeOf = async (user: string): Promise<{ msgIds: string[]; pools: string[] }> => {
    const taken = await observer.rows<{ msg_id: string; pool: string }>(
      `update pgmq.q_intake_queue set read_ct = 1 where message ->> 'user_id' = $1
         and message ->> 'pool_id' like $2 returning msg_id, message ->> 'pool_id' as pool`,
      [user, `order\\_${rounds}\\_%`],
    );
    taken.sort((one, other) => one.pool.localeCompare(other.pool));
    return { msgIds: taken.map(({ msg_id }) => msg_id), pools: taken.map(({ pool }) => pool) };
  };
  const refuse = (session: Session, msgIds: string[], reasons: string[]) =>
    session.rows(`select * from public.bridge_finish($1, '{1,1}', '{refused,refused}', $2, '{0,0}')`, [
      msgIds,
      reasons,
    ]);
  /** The ledger has the tombstones of these claims. */
  const endsOf = (session: Session, pools: string[], user: string | null) =>
    session.rows(
      `select public.finish_ends(array_agg(claim_id), array_agg('voided'::text))
       from (
         select c.claim_id from public.claims c where c.pool_id = any ($1) and c.user_id = coalesce($2, c.user_id)
         order by array_position($1, c.pool_id)
       ) c`,
      [pools, user],
    );
  const runOutHolds = (pools: string[], user: string) =>
    observer.rows(
      `update public.claims set hold_until = now() - interval '1 minute' where pool_id = any ($1) and user_id = $2`,
      [pools, user],
    );

  test('refuse with crossed reasons, and both end', async () => {
    const [a, b] = await newPools(['ann', 'bob']);
    const [ann, bob] = [await takeOf('ann'), await takeOf('bob')];
    await bothBehind(
      MARK,
      a,
      () => refuse(first, ann.msgIds, ['a reason', 'the other']),
      () => refuse(second, bob.msgIds, ['the other', 'a reason']),
    );
    assert.deepEqual([await free(a), await free(b)], [2, 2]);
    assert.deepEqual(
      await observer.rows(
        `select pool_id, user_id, state::text, end_reason from public.claims where pool_id = any ($1) order by 1, 2`,
        [[a, b]],
      ),
      [
        { pool_id: a, user_id: 'ann', state: 'refused', end_reason: 'a reason' },
        { pool_id: a, user_id: 'bob', state: 'refused', end_reason: 'the other' },
        { pool_id: b, user_id: 'ann', state: 'refused', end_reason: 'the other' },
        { pool_id: b, user_id: 'bob', state: 'refused', end_reason: 'a reason' },
      ],
      'each with its own reason',
    );
  });

  test('refuse a claim and what was put there by hand, crossed, and both end', async () => {
    const [a, b] = await newPools(['ann'], 1);
    for (const pool of [a, b])
      await observer.rows(
        `with slot as (
           update public.inventory_slots set status = 'RESERVED', locked_by = 'hand', locked_at = now()
           where pool_id = $1 and status = 'AVAILABLE' returning id
         )
         select public.intake_queue_send(jsonb_build_object(
           'pool_id', $1::text, 'resource_id', id, 'user_id', 'hand', 'state', 'queued')) from slot`,
        [pool],
      );
    const [ann, hand] = [await takeOf('ann'), await takeOf('hand')];
    const ids = (annAt: number, handAt: number) =>
      [ann.msgIds[annAt], hand.msgIds[handAt]] as [string, string];
    await bothBehind(
      MARK,
      a,
      () => refuse(first, ids(0, 1), ['no', 'no']),
      () => refuse(second, ids(1, 0), ['no', 'no']),
    );
    assert.deepEqual([await free(a), await free(b)], [2, 2]);
  });

  test('end discarded letters of the later pool first while holds expire, and both end', async () => {
    const [a, b] = await newPools(['ann', 'bob']);
    const { msgIds } = await takeOf('ann');
    const letters: string[] = [];
    for (const msgId of msgIds.toReversed())
      letters.push(
        await observer.value(
          'select public.intake_route_to_dlq(msg_id, message, 1) from pgmq.q_intake_queue where msg_id = $1',
          [msgId],
        ),
      );
    await runOutHolds([a, b], 'bob');
    await observer.rows(`select * from public.discard_dead_letters($1, 'olga')`, [letters]);
    await bothBehind(
      MARK,
      a,
      () => first.rows('select public.expire_holds()'),
      () => endsOf(second, [b, a], 'ann'),
    );
    assert.deepEqual([await free(a), await free(b)], [2, 2]);
  });

  test('expire the hold of a withdrawn slot while slots are added, and both end', async () => {
    const [a] = await newPools(['ann', 'bob']);
    await observer.rows(
      `delete from public.inventory_slots s using public.claims c
       where s.id = c.slot_id and c.pool_id = $1 and c.user_id = 'ann'`,
      [a],
    );
    await runOutHolds([a], 'ann');
    await runOutHolds([a], 'bob');
    await bothBehind(
      MARK,
      a,
      () => first.rows('select public.expire_holds()'),
      () => second.rows('insert into public.inventory_slots (pool_id) values ($1)', [a]),
    );
    assert.equal(await free(a), 2, 'bob’s slot and the new one');
    assert.equal(
      await observer.value<string>('select slots from intake.pool_totals where pool_id = $1', [a]),
      '2',
      'ann’s is withdrawn',
    );
  });

  test('release what was handed back untried while its pool begins to validate, and both end', async () => {
    const [a] = await newPools(['ann']);
    const { msgIds } = await takeOf('ann');
    await observer.rows(
      `select * from public.bridge_finish($1, '{1,1}', '{untried,untried}', '{r,r}', '{0,0}')`,
      [msgIds],
    );
    const claimId = await observer.value<string>('select claim_id from public.claims where pool_id = $1', [
      a,
    ]);
    await first.client.query('begin');
    // As intake.give_back_claim begins.
    await first.rows('select from public.claims where claim_id = $1 for update', [claimId]);
    const beginning = second.rows(
      `update public.engine_config set validation_webhook_url = 'https://example.com/v' where pool_id = $1`,
      [a],
    );
    await isStuck(second, beginning);
    await first.rows('select * from intake.give_back_claim($1)', [claimId]);
    await first.client.query('commit');
    await beginning;
    assert.equal(await free(a), 1);
  });

  /** Two pools whose caches are lost, in the order of their names, which is not the order of their locks' numbers. */
  const newLostPools = async (): Promise<[string, string]> => {
    for (;;) {
      const pools = await newPools(['ann', 'bob'], 2);
      const keys = await observer.rows<{ key: string }>(
        'select intake.pool_lock_key(p) as key from unnest($1::text[]) p',
        [pools],
      );
      if (BigInt(keys[0]?.key ?? 0) > BigInt(keys[1]?.key ?? 0)) return pools;
    }
  };
  const loseTheCache = () => observer.client.query('truncate public.inventory_slots');
  const LOCK = 'select pg_advisory_xact_lock(intake.pool_lock_key($1))';
  const batchOf = (session: Session, pools: string[], user: string) =>
    session.batch(pools.map((pool) => ({ pool, user })));
  type Work = (session: Session, pools: [string, string]) => Promise<unknown>;
  /** What takes the locks of two pools, each as it is called in earnest; of ann what ends her claims, of bob what sells them. */
  const TAKERS: Record<string, Work> = {
    'a batch': (session, pools) => batchOf(session, pools.toReversed(), 'cyd'),
    'a rebuild of all': (session) => session.rows('select intake.ensure_inventory()'),
    'a refusal': async (session, pools) =>
      session.rows(
        `select intake.free_claims(array_agg(claim_id order by pool_id desc), 'released', 'by hand')
         from public.claims where pool_id = any ($1) and user_id = 'ann'`,
        [pools],
      ),
    'an end': async (session, pools) => {
      await session.rows(
        `update public.claims set end_as = 'released', end_due = now() where pool_id = any ($1) and user_id = 'ann'`,
        [pools],
      );
      return endsOf(session, pools.toReversed(), 'ann');
    },
    'a void': (session, pools) =>
      session.rows(
        `select public.finish_void(array_agg(claim_id order by pool_id desc), 'refunded')
         from public.claims where pool_id = any ($1) and user_id = 'ann'`,
        [pools],
      ),
    'a commit': (session, pools) =>
      session.rows(
        `select intake.consume_slots(array_agg(slot_id order by pool_id desc))
         from public.claims where pool_id = any ($1) and user_id = 'bob'`,
        [pools],
      ),
    'an insert of slots': (session, pools) =>
      session.rows('insert into public.inventory_slots (pool_id) select unnest($1::text[])', [
        pools.toReversed(),
      ]),
  };
  const names = Object.keys(TAKERS);
  for (const one of names)
    for (const other of names)
      test(`of pools that are lost take their locks in one order: ${one}, then ${other}`, async () => {
        const pools = await newLostPools();
        await loseTheCache();
        await bothBehind(
          LOCK,
          pools[0],
          () => (TAKERS[one] as Work)(first, pools),
          () => (TAKERS[other] as Work)(second, pools),
        );
      });

  for (const [what, take] of [
    ['a batch', (pools: [string, string]) => batchOf(second, pools, 'cyd')],
    [
      'an insert of slots',
      (pools: [string, string]) =>
        second.rows('insert into public.inventory_slots (pool_id) select unnest($1::text[])', [pools]),
    ],
  ] as const)
    test(`${what} that needs one pool's mark has the lock of the other, lost pool before it`, async () => {
      const [a, b] = await newLostPools();
      // The last slots of the first pool go, so that a batch has to declare it sold out: that takes its mark.
      await observer.rows(
        `update public.inventory_slots set status = 'CONSUMED' where pool_id = $1 and status = 'AVAILABLE'`,
        [a],
      );
      await observer.rows('update intake.pool_marks set sold_out = false where pool_id = $1', [a]);
      await observer.rows('delete from intake.pool_marks where pool_id = $1', [b]);
      // As intake.free_claims begins: the locks of both pools, before slots and marks.
      await first.client.query('begin');
      await first.rows(
        'select pg_advisory_xact_lock_shared(intake.pool_lock_key(p)) from unnest($1::text[]) p',
        [[a, b]],
      );
      const work = take([a, b]).then(
        () => 'done',
        (error) => String(error),
      );
      await isStuck(second, work);
      const ended = first.rows(
        `select intake.free_claims(array_agg(claim_id), 'released', 'by hand')
         from public.claims where pool_id = any ($1) and user_id = 'ann'`,
        [[a, b]],
      );
      await isStuck(first, ended);
      const freed = await ended.then(
        () => 'done',
        (error) => String(error),
      );
      await first.client.query('commit').catch(() => undefined);
      assert.deepEqual([freed, await work], ['done', 'done']);
    });

  test('replay a letter of a user who is being counted: busy, without waiting', async () => {
    const [a, b] = await newPools(['ann'], 1);
    const { msgIds } = await takeOf('ann');
    for (const msgId of msgIds)
      await observer.rows(
        'select public.intake_route_to_dlq(msg_id, message, 1) from pgmq.q_intake_queue where msg_id = $1',
        [msgId],
      );
    await observer.rows(
      `select intake.free_claims(array_agg(claim_id), 'released', 'by hand') from public.claims where pool_id = any ($1)`,
      [[a, b]],
    );
    await observer.rows('update public.engine_config set max_per_user = 1 where pool_id = any ($1)', [
      [a, b],
    ]);
    const letters = await observer.value<string[]>(
      `select array_agg(msg_id order by message ->> 'pool_id') from pgmq.q_intake_dlq where message ->> 'pool_id' = any ($1)`,
      [[a, b]],
    );
    await first.client.query('begin');
    await first.claim(b, 'ann');
    await second.client.query(`set lock_timeout = '2s'`);
    const outcomes = await second.rows(
      `select outcome from public.replay_dead_letters($1, 'olga') order by msg_id`,
      [letters],
    );
    await first.client.query('commit');
    assert.deepEqual(outcomes, [{ outcome: 'claimed' }, { outcome: 'busy' }]);
  });
});
