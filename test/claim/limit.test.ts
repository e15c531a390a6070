import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { ASKING, closeAll, interleave, openSessions, type Session } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';

const SESSIONS = 50;
const BATCH = 4;
const LIMIT = 3;

describe('the limit of claims a user may hold', () => {
  let crowd: Session[] = [];
  let pools = 0;
  // Before the database itself is stopped.
  after(() => closeAll(crowd));
  const database = useIntake('observer', 'first', 'second');
  const { observer, first, second } = database;

  before(async () => {
    crowd = await openSessions(database.url(), SESSIONS);
  });

  const newPool = async (limit: number, slots = SESSIONS * BATCH + 10) => {
    const pool = `limit_${++pools}`;
    await putOnSale(observer.client, pool, slots, { max_per_user: limit });
    return pool;
  };
  const held = (pool: string, user: string) =>
    observer.value<number>(
      'select count(*)::int from public.claims where pool_id = $1 and user_id = $2 and freed_at is null',
      [pool, user],
    );
  const releaseOne = (pool: string, user: string) =>
    observer.value<string>(
      `select (public.release_own_claim(c.claim_id, c.user_id)).state from public.claims c
       where c.pool_id = $1 and c.user_id = $2 and c.freed_at is null limit 1`,
      [pool, user],
    );
  /** All sessions ask for the same user at once, every other one in a batch. */
  const rush = async (pool: string, user: string) => {
    const outcomes = await Promise.all(
      crowd.map(async (session, at) => {
        if (at % 2 === 0) return [(await ASKING.single(session, pool, user)).outcome];
        const requests = Array.from({ length: BATCH }, () => ({ pool, user }));
        return (await session.batch(requests)).map((answer) => answer.outcome);
      }),
    );
    const count = (wanted: string) => outcomes.flat().filter((outcome) => outcome === wanted).length;
    return { claimed: count('claimed'), limit: count('limit'), busy: count('busy') };
  };

  test(`holds against ${SESSIONS} sessions at once, single claims and batches mixed`, async () => {
    const pool = await newPool(LIMIT);
    const outcomes = await rush(pool, 'greedy');
    assert.equal(await held(pool, 'greedy'), LIMIT);
    assert.equal(outcomes.claimed, LIMIT);
    // A batch does not wait for a user who is being counted: it says busy.
    assert.equal(outcomes.limit + outcomes.busy, (SESSIONS / 2) * (1 + BATCH) - LIMIT);
  });

  test('is room for exactly as many claims as were released', async () => {
    const pool = await newPool(LIMIT);
    await rush(pool, 'greedy');
    assert.equal(await releaseOne(pool, 'greedy'), 'released');
    assert.equal(await releaseOne(pool, 'greedy'), 'released');
    const outcomes = await rush(pool, 'greedy');
    assert.equal(outcomes.claimed, 2);
    assert.equal(await held(pool, 'greedy'), LIMIT);
  });

  test('is each user’s own: users who race in shuffled batches all get theirs, without a deadlock', async () => {
    const USERS = 20;
    const pool = await newPool(1, USERS * 2);
    const outcomes = await Promise.all(
      crowd.slice(0, 20).map((session, at) => {
        const users = Array.from({ length: USERS }, (_, user) => (user * 7 + at * 3) % USERS);
        return session.batch(users.map((user) => ({ pool, user: `user ${user}` })));
      }),
    );
    assert.equal(outcomes.flat().filter((answer) => answer.outcome === 'claimed').length, USERS);
    for (let user = 0; user < USERS; user++) assert.equal(await held(pool, `user ${user}`), 1);
  });

  for (const kind of ['single', 'batch'] as const) {
    for (const [end, outcome] of [
      ['commit', 'limit'],
      ['rollback', 'claimed'],
    ] as const) {
      test(`makes a single claim wait for a claim that is not committed: ${kind}, ${end}`, async () => {
        const pool = await newPool(1);
        const answers = await interleave(
          observer,
          { session: first, run: () => ASKING[kind](first, pool, 'buyer'), end },
          { session: second, run: () => ASKING.single(second, pool, 'buyer') },
        );
        assert.equal(answers.second.outcome, outcome);
        assert.equal(await held(pool, 'buyer'), 1);
      });

      test(`makes a batch answer busy over a claim that is not committed: ${kind}, ${end}`, async () => {
        const pool = await newPool(1);
        await first.client.query('begin');
        await ASKING[kind](first, pool, 'buyer');
        const answers = await second.batch([
          { pool, user: 'buyer' },
          { pool, user: 'another buyer' },
        ]);
        assert.deepEqual(
          answers.map((answer) => answer.outcome).sort(),
          ['busy', 'claimed'],
          'only the user who is being counted has to ask again',
        );
        await first.client.query(end);
        assert.equal((await ASKING.batch(second, pool, 'buyer')).outcome, outcome);
        assert.equal(await held(pool, 'buyer'), 1);
      });
    }
  }
});
