import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { solveChallenge } from '#client/solve.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { ask, assertRefusal, claim, openClient, putOnSale, startTestServer } from './support.ts';

const DIFFICULTY = 1_000;
const ADDRESSES = 1_000;
const AT_ONCE = 20;

describe('claims in a pool that asks for a challenge, at two servers', () => {
  let databases: TestDatabases;
  let servers: RunningServer[];
  let db1: pg.Client;
  before(async () => {
    databases = await startDatabases();
    const behindProxy = { proxy: { trustedProxies: 1 } };
    servers = [await startTestServer(databases, behindProxy), await startTestServer(databases, behindProxy)];
    db1 = await openClient(databases.db1.url);
    for (const pool of ['puzzle', 'other', 'harder'])
      await putOnSale(db1, pool, 100, { challenge_difficulty: DIFFICULTY });
  });
  after(async () => {
    await db1?.end();
    for (const server of servers ?? []) await server.stop();
    await databases?.stop();
  });
  const at = (server: number): string => servers[server]?.url ?? '';
  const solve = async (pool: string): Promise<string> => {
    const { json } = await ask(`${at(0)}/v1/pools/${pool}/challenge`);
    return (await solveChallenge(json)) ?? '';
  };
  const soldTo = async (pool: string): Promise<number> =>
    (await db1.query('select count(*)::int as n from public.claims where pool_id = $1', [pool])).rows[0].n;

  it('sell one slot for each solution, however often it is sent at once', async () => {
    const solution = await solve('puzzle');
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, buyer) =>
        claim(at(buyer % 2), 'puzzle', { user_id: `robot-${buyer}`, challenge: solution }),
      ),
    );
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [201, ...Array(19).fill(409)]);
    for (const refused of answers.filter(({ status }) => status === 409))
      assertRefusal(refused, 409, 'challenge_used');
    assert.equal(await soldTo('puzzle'), 1);
    // The control: as many solutions as buyers.
    for (const buyer of [0, 1]) {
      const body = { user_id: `person-${buyer}`, challenge: await solve('puzzle') };
      assert.equal((await claim(at(buyer), 'puzzle', body)).status, 201);
    }
    assert.equal(await soldTo('puzzle'), 3);
  });

  it('sell a thousand addresses one slot each for a solution that each sends to both servers at once', async () => {
    await putOnSale(db1, 'crowd', 2 * ADDRESSES, { challenge_difficulty: DIFFICULTY });
    const counts: Record<string, number> = {};
    let next = 0;
    const buyer = async (): Promise<void> => {
      for (let number = next++; number < ADDRESSES; number = next++) {
        const headers = { 'x-forwarded-for': `198.18.${number >> 8}.${number & 255}` };
        const challenge = await solve('crowd');
        const answers = await Promise.all(
          [0, 1].map((server) =>
            claim(at(server), 'crowd', { user_id: `${number} at ${server}`, challenge }, headers),
          ),
        );
        for (const { json } of answers) {
          const word = json.error?.code ?? json.status;
          counts[word] = (counts[word] ?? 0) + 1;
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, buyer));
    assert.deepEqual(counts, { queued: ADDRESSES, challenge_used: ADDRESSES });
    assert.equal(await soldTo('crowd'), ADDRESSES);
  });

  it('give the same claim for the same request, with its solution again or without one', async () => {
    const body = { user_id: 'ann', request_id: 'order-1', secret: 'known-to-ann-alone' };
    const made = await claim(at(0), 'other', { ...body, challenge: await solve('other') });
    assert.equal(made.status, 201);
    for (const again of [{}, { challenge: await solve('other') }]) {
      const { status, json } = await claim(at(1), 'other', { ...body, ...again });
      assert.deepEqual([status, json.claim_id], [200, made.json.claim_id]);
    }
    assert.equal(await soldTo('other'), 1);
  });

  it('refuse no solution, a wrong one, one of another pool, and one that is too easy by now', async () => {
    const easy = await solve('harder');
    const tries = [undefined, 'bm8=', await solve('puzzle')];
    for (const challenge of tries)
      assertRefusal(
        await claim(at(0), 'harder', { user_id: 'eve', ...(challenge && { challenge }) }),
        403,
        'challenge_required',
      );
    await db1.query(
      `update public.engine_config set challenge_difficulty = challenge_difficulty * 2 where pool_id = 'harder'`,
    );
    assertRefusal(
      await claim(at(0), 'harder', { user_id: 'eve', challenge: easy }),
      403,
      'challenge_required',
    );
    assert.equal(await soldTo('harder'), 0);
    await db1.query(
      `update public.engine_config set challenge_difficulty = ${DIFFICULTY} where pool_id = 'harder'`,
    );
    assert.equal((await claim(at(0), 'harder', { user_id: 'eve', challenge: easy })).status, 201);
  });
});
