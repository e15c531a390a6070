import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Coalescer, ENOUGH, MAX_PER_FLUSH, RETRY } from '#core/coalescer.ts';
import { HttpError } from '#core/errors.ts';

const refusedAs = (code: string) => (error: unknown) =>
  error instanceof HttpError && error.kind.code === code;

interface Flight {
  readonly requests: number[];
  land(answers?: (string | typeof RETRY)[]): Promise<void>;
  crash(error: Error): Promise<void>;
}

/** Lets everything that is ready run; nothing here waits for a clock. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await undefined;
}

/** A flush that the test lands by hand. */
function setUp(maxWaiting?: number, keyOf: (request: number) => string = () => '') {
  const flights: Flight[] = [];
  const coalescer = new Coalescer<number, string>(
    (requests) => {
      return new Promise((resolve, reject) => {
        flights.push({
          requests,
          land: (answers = requests.map((request) => `answer ${request}`)) => {
            resolve(answers);
            return settle();
          },
          crash: (error) => {
            reject(error);
            return settle();
          },
        });
      });
    },
    {
      ...(maxWaiting !== undefined && { maxWaiting }),
      keyOf,
      mayBeOneMembers: (error) => (error as Error).message === 'spoiled',
    },
  );
  const flight = (index: number): Flight => {
    const found = flights[index];
    assert.ok(found, `flight ${index} is missing`);
    return found;
  };
  return { coalescer, flights, flight };
}

describe('the coalescer', () => {
  it('sends a lone request at once', async () => {
    const { coalescer, flight } = setUp();
    const answer = coalescer.submit(1);
    await settle();
    assert.deepEqual(flight(0).requests, [1]);
    await flight(0).land();
    assert.equal(await answer, 'answer 1');
  });

  it('keeps requests that arrive during a flush for the next one, all together', async () => {
    const { coalescer, flights, flight } = setUp();
    const answers = [coalescer.submit(1)];
    await settle();
    answers.push(coalescer.submit(2), coalescer.submit(3));
    await settle();
    assert.equal(flights.length, 1);
    await flight(0).land();
    assert.deepEqual(flight(1).requests, [2, 3]);
    await flight(1).land();
    assert.deepEqual(await Promise.all(answers), ['answer 1', 'answer 2', 'answer 3']);
  });

  it('waits for no turn where enough requests leave without it', async () => {
    for (const [count, waits] of [
      [ENOUGH - 1, 1],
      [ENOUGH, 0],
    ] as const) {
      let turns = 0;
      const first = { answer: (): void => undefined };
      const batches: number[] = [];
      const coalescer = new Coalescer<number, number>(
        async (requests) => {
          batches.push(requests.length);
          if (batches.length === 1)
            await new Promise<void>((resolve) => {
              first.answer = resolve;
            });
          return requests;
        },
        { turn: async () => void turns++ },
      );
      const answers = [coalescer.submit(0)];
      await settle();
      turns = 0;
      for (let at = 0; at < count; at++) answers.push(coalescer.submit(at));
      first.answer();
      await Promise.all(answers);
      assert.deepEqual([batches, turns], [[1, count], waits]);
    }
  });

  it('waits for the turn before a flush of few, and sends together what came until then', async () => {
    const batches: number[][] = [];
    let end = (): void => undefined;
    const coalescer = new Coalescer<number, string>(
      async (requests) => {
        batches.push(requests);
        // It comes while the flush is under way.
        if (requests.includes(1)) answers.push(coalescer.submit(3));
        return requests.map(String);
      },
      {
        turn: () =>
          new Promise((resolve) => {
            end = resolve;
          }),
      },
    );
    const answers = [coalescer.submit(1)];
    await settle();
    answers.push(coalescer.submit(2));
    await settle();
    assert.deepEqual(batches, []);
    end();
    await settle();
    answers.push(coalescer.submit(4));
    await settle();
    assert.deepEqual(batches, [[1, 2]]);
    end();
    assert.deepEqual(await Promise.all(answers), ['1', '2', '3', '4']);
    assert.deepEqual(batches, [
      [1, 2],
      [3, 4],
    ]);
  });

  it(`never sends more than ${MAX_PER_FLUSH} at once, in the order of arrival`, async () => {
    const { coalescer, flight } = setUp();
    const answers = Array.from({ length: MAX_PER_FLUSH + 1 }, (_, index) => coalescer.submit(index));
    await settle();
    assert.equal(flight(0).requests.length, MAX_PER_FLUSH);
    assert.equal(flight(0).requests[0], 0);
    await flight(0).land();
    assert.deepEqual(flight(1).requests, [MAX_PER_FLUSH]);
    await flight(1).land();
    assert.equal((await Promise.all(answers)).length, MAX_PER_FLUSH + 1);
  });

  it('sends no more weight at once than it may, and what is too heavy by itself alone', async () => {
    const batches: number[][] = [];
    const coalescer = new Coalescer<number, string>(
      async (requests) => {
        batches.push(requests);
        return requests.map(String);
      },
      { weigh: (request) => request, maxWeight: 10 },
    );
    await Promise.all([4, 6, 1, 50, 3, 3].map((request) => coalescer.submit(request)));
    assert.deepEqual(batches, [[4, 6], [1], [50], [3, 3]]);
  });

  it('refuses what would wait in too long a line, and takes requests again once the line is shorter', async () => {
    const { coalescer, flight } = setUp(2);
    const first = coalescer.submit(1);
    await settle();
    const waiting = [coalescer.submit(2), coalescer.submit(3)];
    await assert.rejects(coalescer.submit(4), refusedAs('overloaded'));
    await flight(0).land();
    const later = coalescer.submit(5);
    await flight(1).land();
    await flight(2).land();
    assert.deepEqual(await Promise.all([first, ...waiting, later]), [
      'answer 1',
      'answer 2',
      'answer 3',
      'answer 5',
    ]);
  });

  it('refuses what would make the waiting ones too heavy, and takes requests again once some have left', async () => {
    const flights: (() => void)[] = [];
    const coalescer = new Coalescer<number, string>(
      (requests) => new Promise((resolve) => flights.push(() => resolve(requests.map(String)))),
      { weigh: (request) => request, maxWaitingWeight: 10 },
    );
    const flying = coalescer.submit(9);
    await settle();
    const waiting = [coalescer.submit(6), coalescer.submit(4)];
    await assert.rejects(coalescer.submit(1), refusedAs('overloaded'));
    flights[0]?.();
    await settle();
    const later = coalescer.submit(10);
    await assert.rejects(coalescer.submit(1), refusedAs('overloaded'));
    flights[1]?.();
    await settle();
    flights[2]?.();
    assert.deepEqual(await Promise.all([flying, ...waiting, later]), ['9', '6', '4', '10']);
  });

  it('weighs a request that is to be retried as one that waits', async () => {
    const answers: (string | typeof RETRY)[][] = [[RETRY], [RETRY], ['10']];
    const gates: (() => void)[] = [];
    const coalescer = new Coalescer<number, string>(
      () => new Promise((resolve) => gates.push(() => resolve(answers.shift() ?? []))),
      { weigh: (request) => request, maxWaitingWeight: 10 },
    );
    const retried = coalescer.submit(10);
    await settle();
    gates[0]?.();
    await settle();
    gates[1]?.();
    await settle();
    await assert.rejects(coalescer.submit(1), refusedAs('overloaded'));
    while (gates[2] === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
    gates[2]();
    assert.equal(await retried, '10');
  });

  it('rejects just the requests of a flush that failed, and goes on', async () => {
    const { coalescer, flight } = setUp();
    const lost = coalescer.submit(1);
    await settle();
    const next = coalescer.submit(2);
    const expectation = assert.rejects(lost, /connection lost/);
    await flight(0).crash(new Error('connection lost'));
    await expectation;
    await flight(1).land();
    assert.equal(await next, 'answer 2');
  });

  it('halves a spoiled batch until the request that spoils it stands alone', async () => {
    const spoiler = 3;
    const batches: number[][] = [];
    const coalescer = new Coalescer<number, string>(
      async (requests) => {
        batches.push(requests);
        if (requests.includes(spoiler)) throw new Error('spoiled');
        return requests.map((request) => `answer ${request}`);
      },
      { mayBeOneMembers: (error) => (error as Error).message === 'spoiled' },
    );
    const answers = await Promise.allSettled([1, 2, 3, 4].map((request) => coalescer.submit(request)));
    assert.deepEqual(
      answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason.message)),
      ['answer 1', 'answer 2', 'spoiled', 'answer 4'],
    );
    // Once more as a whole, by themselves: it may have been another key's fault.
    assert.deepEqual(batches, [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2], [3, 4], [3], [4]]);
    await coalescer.drain();
  });

  it('survives a flush that throws before it returns a promise', async () => {
    let calls = 0;
    const coalescer = new Coalescer<number, string>(() => {
      calls++;
      throw new Error('at once');
    });
    await assert.rejects(coalescer.submit(1), /at once/);
    await assert.rejects(coalescer.submit(2), /at once/);
    assert.equal(calls, 2);
  });

  it('rejects a flush that answers too few', async () => {
    const { coalescer, flight } = setUp();
    const both = [coalescer.submit(1), coalescer.submit(2)].map((answer) =>
      assert.rejects(answer, /gave 1 answers/),
    );
    await settle();
    await flight(0).land(['answer 1']);
    await Promise.all(both);
  });

  it('puts a request that is to be retried first into the next flush', async () => {
    const { coalescer, flight } = setUp();
    const answers = [coalescer.submit(1), coalescer.submit(2)];
    await settle();
    answers.push(coalescer.submit(3));
    await flight(0).land([RETRY, 'answer 2']);
    assert.deepEqual(flight(1).requests, [1, 3]);
    await flight(1).land();
    assert.deepEqual(await Promise.all(answers), ['answer 1', 'answer 2', 'answer 3']);
  });

  it('takes from the keys in turn, and gives what they leave free to the one with more', async () => {
    const batches: string[][] = [];
    const coalescer = new Coalescer<string, string>(
      async (requests) => {
        batches.push(requests);
        return requests;
      },
      { keyOf: (request) => request[0] as string },
    );
    const names = (key: string, count: number) => Array.from({ length: count }, (_, at) => `${key}${at}`);
    const crowd = names('a', 2 * MAX_PER_FLUSH);
    const few = [...names('b', 3), ...names('c', 1)];
    await Promise.all([...crowd, ...few].map((request) => coalescer.submit(request)));
    assert.deepEqual(
      batches.map(({ length }) => length),
      [MAX_PER_FLUSH, MAX_PER_FLUSH, 4],
    );
    assert.deepEqual(
      few.filter((request) => !batches[0]?.includes(request)),
      [],
      'the few leave at once',
    );
    assert.deepEqual(
      batches.flat().filter((request) => request.startsWith('a')),
      crowd,
      'each key in its order',
    );
  });

  it('has room for the next key, however many are full', async () => {
    const { coalescer, flights, flight } = setUp(6, (request) => String(request % 10));
    const flying = coalescer.submit(0);
    await settle();
    const accepted = [flying];
    for (let key = 1; key <= 4; key++) {
      let count = 0;
      for (let isFull = false; !isFull; ) {
        const answer = coalescer.submit(key);
        isFull = await Promise.race([answer.then(Boolean, () => true), settle().then(() => false)]);
        if (isFull) await assert.rejects(answer, refusedAs('overloaded'));
        else count = accepted.push(answer);
      }
      assert.ok(count > 0, `key ${key} found no room`);
    }
    assert.equal(accepted.length, 1 + 6 + 3 + 2 + 1);
    await flight(0).land();
    while (flights.length < 2) await settle();
    await flight(1).land();
    await Promise.all(accepted);
  });

  it('answers everything it accepted before it is drained, and takes nothing new', async () => {
    const { coalescer, flight } = setUp();
    const answers = [coalescer.submit(1)];
    await settle();
    answers.push(coalescer.submit(2));
    let drained = false;
    const drain = coalescer.drain().then(() => {
      drained = true;
    });
    await assert.rejects(coalescer.submit(3), refusedAs('shutting_down'));
    await flight(0).land();
    assert.equal(drained, false);
    await flight(1).land();
    await drain;
    assert.deepEqual(await Promise.all(answers), ['answer 1', 'answer 2']);
  });

  it('is drained at once where nothing waits', async () => {
    await setUp().coalescer.drain();
  });
});
