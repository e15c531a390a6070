// Events under way: whose room they take up, and who works on them.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { handlerOf, neverAborted, ProcessWorld, SUCCESS, takenEvent } from './process_support.ts';

const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe('a processor that runs', () => {
  it('begins the ninth event of a TypeScript handler when one of eight has ended', async () => {
    const world = new ProcessWorld();
    const calls: (() => void)[] = [];
    world.handlers = [handlerOf({ call: () => new Promise<void>((resolve) => void calls.push(resolve)) })];
    world.events = Array.from({ length: 9 }, (_, at) => takenEvent(`${at}`, 'h'));
    const stopping = new AbortController();
    const running = world.processor().run(stopping.signal);
    await settle();
    assert.equal(calls.length, 8);
    calls.shift()?.();
    await settle();
    assert.equal(calls.length, 8, 'seven, and the ninth');
    for (const end of calls) end();
    await settle();
    stopping.abort();
    await running;
    assert.equal(world.calls.filter(({ functionName }) => functionName === 'webhook.finish_event').length, 9);
  });

  it('asks for nothing while all its lanes have a set under way', async () => {
    const world = new ProcessWorld();
    let end: () => void = () => undefined;
    world.process = async (ids) => {
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      return new Map(ids.map((id) => [id, SUCCESS]));
    };
    world.events = Array.from({ length: 5 }, (_, at) => takenEvent(`${at}`));
    const stopping = new AbortController();
    const processor = world.processor();
    const running = processor.run(stopping.signal);
    await settle();
    processor.wake();
    await settle();
    assert.deepEqual(
      world.takes.map(({ lanes }) => lanes.length),
      [1],
    );
    stopping.abort();
    end();
    await running;
  });
});

describe('a step', () => {
  for (const order of [
    ['here', 'sql'],
    ['sql', 'here'],
  ])
    it(`works on ${order.join(' and ')} events of one lane apart: their handler was changed in between`, async () => {
      const world = new ProcessWorld();
      const handled: string[] = [];
      world.handlers = [handlerOf({ apply: async ({ id }) => void handled.push(id) })];
      const here = takenEvent('here', 'h');
      const events = { here, sql: { ...takenEvent('sql'), lane: here.lane } };
      world.events = order.map((name) => events[name as 'here' | 'sql']);
      // The lane has the limits of its first handler, of either kind.
      assert.deepEqual((await world.step()).outcomes, { success: 2 });
      assert.deepEqual([handled, world.sets], [['here'], [['sql']]]);
    });

  it('gives handlers the time that it was told', async () => {
    const world = new ProcessWorld();
    world.timeouts = { callMs: 5, applyMs: 77 };
    world.handlers = [
      handlerOf({ call: ({ id }) => (id === 'slow' ? new Promise(() => undefined) : Promise.resolve()) }),
    ];
    world.events = [takenEvent('slow', 'h'), takenEvent('quick', 'h')];
    const { outcomes } = await world.processor().step(neverAborted);
    assert.deepEqual([outcomes, world.limitsMs], [{ success: 1, failed: 1 }, [77]]);
    assert.equal(world.finished[0]?.error, 'not done within 5 ms');
  });
});
