// A key that meets an obstacle goes by itself, and the others go on. The flushes land by hand and the clock is the test's.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Coalescer, type CoalescerOptions, RETRY } from '#core/coalescer.ts';
import { HttpError } from '#core/errors.ts';
import { ASIDE_CONNECTIONS, ASIDE_MS, PATIENCE_MS } from '#core/side_lane.ts';

const LOCK_TIMEOUT = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });
const isBusy = (error: unknown) => error instanceof HttpError && error.kind.code === 'busy';

/** Lets everything that is ready run; nothing here waits for a clock. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await undefined;
}

interface Flight {
  readonly requests: string[];
  readonly isAside: boolean;
  land(answers?: (string | typeof RETRY)[]): Promise<void>;
  crash(error?: Error): Promise<void>;
}

/** Requests are named by their key and a number: p1, q1. */
function setUp(options: CoalescerOptions<string> = {}) {
  const flights: Flight[] = [];
  const clock = { ms: 1_000 };
  const told: [string, boolean][] = [];
  const coalescer = new Coalescer<string, string>(
    (requests, isAside) =>
      new Promise((resolve, reject) => {
        flights.push({
          requests,
          isAside,
          land: (answers = requests) => {
            resolve(answers);
            return settle();
          },
          crash: (error = LOCK_TIMEOUT) => {
            reject(error);
            return settle();
          },
        });
      }),
    {
      keyOf: (request) => request[0] as string,
      onStuck: (key, isStuck) => told.push([key, isStuck]),
      now: () => clock.ms,
      ...options,
    },
  );
  /** The next flight, once it has left. */
  const next = async (): Promise<Flight> => {
    for (let wait = 0; flights.length === 0 && wait < 200; wait++)
      await new Promise((resolve) => setTimeout(resolve, 5));
    const flight = flights.shift();
    assert.ok(flight, 'no flush has left');
    return flight;
  };
  const submit = async (...requests: string[]) => {
    const answers = requests.map((request) => coalescer.submit(request));
    for (const answer of answers) answer.catch(() => undefined);
    await settle();
    return answers as [Promise<string>, ...Promise<string>[]];
  };
  return { coalescer, flights, next, submit, clock, told };
}

describe('a flush that meets a lock', () => {
  it('is split by key, each goes by itself, and the common lane goes on without them', async () => {
    const { next, submit, told } = setUp();
    const answers = await submit('p1', 'q1', 'p2');
    const common = await next();
    assert.deepEqual([common.requests, common.isAside], [['p1', 'p2', 'q1'], false]);
    await common.crash();
    const [p, q] = [await next(), await next()];
    assert.deepEqual([p.requests, p.isAside], [['p1', 'p2'], true]);
    assert.deepEqual([q.requests, q.isAside], [['q1'], true]);
    const other = await submit('r1');
    const third = await next();
    assert.deepEqual([third.requests, third.isAside], [['r1'], false], 'while both are under way');
    for (const flight of [third, q, p]) await flight.land();
    assert.deepEqual(await Promise.all([...answers, ...other]), ['p1', 'q1', 'p2', 'r1']);
    assert.deepEqual(told, [], 'each has come through: none was stuck');
    await submit('p3');
    assert.equal((await next()).isAside, false, 'it is back');
  });

  it('is halved by itself down to the request that is stuck, which is then tried alone until it is told busy', async () => {
    const { next, submit, clock, told, coalescer } = setUp();
    const [one, stuck, three] = await submit('p1', 'p2', 'p3');
    await (await next()).crash();
    const sent: string[][] = [];
    const fly = async () => {
      const flight = await next();
      assert.equal(flight.isAside, true);
      sent.push(flight.requests);
      if (flight.requests.includes('p2')) await flight.crash();
      else await flight.land();
    };
    for (let count = 0; count < 4; count++) await fly();
    assert.deepEqual(sent, [['p1', 'p2', 'p3'], ['p1'], ['p2', 'p3'], ['p2']]);
    await fly();
    assert.deepEqual(sent.at(-1), ['p3']);
    assert.deepEqual([await one, await three], ['p1', 'p3']);
    const [four] = await submit('p4');
    await fly();
    assert.deepEqual(sent.at(-1), ['p2'], 'alone: it spoils no other');
    await fly();
    assert.deepEqual([sent.at(-1), await four], [['p4'], 'p4']);
    clock.ms += PATIENCE_MS + 1;
    await fly();
    await assert.rejects(stuck as Promise<string>, isBusy);
    assert.deepEqual(told, [['p', true]]);
    await coalescer.drain();
  });

  it('keeps its key aside for a while after, and gives it back once that has come through', async () => {
    const { next, submit, clock, told } = setUp();
    const [stuck] = await submit('p1');
    await (await next()).crash();
    await (await next()).crash();
    await (await next()).land();
    assert.equal(await stuck, 'p1');
    await submit('p2');
    const still = await next();
    assert.equal(still.isAside, true);
    clock.ms += ASIDE_MS;
    await still.land();
    await submit('p3');
    const back = await next();
    assert.deepEqual([back.requests, back.isAside], [['p3'], false]);
    await back.land();
    assert.deepEqual(told, [
      ['p', true],
      ['p', false],
    ]);
  });

  it(`lets ${ASIDE_CONNECTIONS} keys fly at once, and the others in turn`, async () => {
    const { next, submit, flights } = setUp();
    const keys = 'abcdefg'.split('');
    const answers = await submit(...keys);
    await (await next()).crash();
    await settle();
    assert.equal(flights.length, ASIDE_CONNECTIONS);
    for (const key of keys) {
      const flight = await next();
      assert.deepEqual(flight.requests, [key]);
      await flight.land();
    }
    assert.deepEqual(await Promise.all(answers), keys);
  });

  it('tells a key that got no turn within its patience that it is busy, all of it at once', async () => {
    const { next, submit, flights } = setUp({ mayBeOneMembers: () => true });
    const keys = 'abcd'.split('');
    assert.equal(keys.length, ASIDE_CONNECTIONS);
    const answers = await submit(...keys, 'e1', 'e2', 'e3', 'e4');
    await (await next()).crash();
    await settle();
    const startedMs = Date.now();
    for (const answer of answers.slice(ASIDE_CONNECTIONS)) await assert.rejects(answer, isBusy);
    assert.ok(Date.now() - startedMs < 2 * PATIENCE_MS, `${Date.now() - startedMs} ms`);
    for (const flight of flights.splice(0)) await flight.land();
    assert.deepEqual(await Promise.all(answers.slice(0, ASIDE_CONNECTIONS)), keys);
  });

  it('fails for all keys when the database is away', async () => {
    const { next, submit, flights } = setUp();
    const answers = await submit('p1', 'q1');
    await (await next()).crash(Object.assign(new Error('gone'), { code: '08006' }));
    for (const answer of answers) await assert.rejects(answer, /gone/);
    assert.equal(flights.length, 0);
  });
});

describe('a key that is to be asked again', () => {
  it('and got no answer at all goes by itself, and the common lane does not pause', async () => {
    const { next, submit } = setUp();
    const [p] = await submit('p1', 'q1');
    await (await next()).land([RETRY, 'q1']);
    const again = await next();
    assert.deepEqual([again.requests, again.isAside], [['p1'], true]);
    await again.land([RETRY]);
    const [q] = await submit('q2');
    const other = await next();
    assert.deepEqual([other.requests, other.isAside], [['q2'], false]);
    await other.land();
    assert.equal(await q, 'q2');
    await (await next()).land();
    assert.equal(await p, 'p1');
    await submit('p2');
    assert.equal((await next()).isAside, false, 'one that never failed comes back at once');
  });

  it('stays where some of it was answered', async () => {
    const { next, submit } = setUp();
    await submit('p1', 'p2');
    await (await next()).land([RETRY, 'p2']);
    const again = await next();
    assert.deepEqual([again.requests, again.isAside], [['p1'], false]);
    await again.land();
  });

  it('lets those behind try where the first get no answer, and is told busy when its patience is over', async () => {
    const { next, submit, clock } = setUp();
    const [one] = await submit('p1');
    await (await next()).land([RETRY]);
    const aside = await next();
    const [two] = await submit('p2');
    await aside.land([RETRY]);
    const both = await next();
    assert.deepEqual(both.requests, ['p2', 'p1']);
    clock.ms += PATIENCE_MS + 1;
    await both.land([RETRY, RETRY]);
    await assert.rejects(one as Promise<string>, isBusy);
    await (await next()).land();
    assert.equal(await two, 'p2');
  });
});

describe('draining', () => {
  it('waits for what is aside, and not for the time that a key stays there', async () => {
    const { next, submit, coalescer } = setUp();
    const [stuck] = await submit('p1');
    await (await next()).crash();
    await (await next()).crash();
    const drained = coalescer.drain();
    await (await next()).land();
    await drained;
    assert.equal(await stuck, 'p1');
  });
});
