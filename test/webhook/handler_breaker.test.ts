// A handler, or a service that it calls, is down: the handler's events wait, instead of using up their attempts.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PermanentError } from '#core/webhook/handlers.ts';
import type { Processed } from '#core/webhook/ports.ts';
import { coded, handlerOf, neverAborted, ProcessWorld, SUCCESS, takenEvent } from './process_support.ts';

describe('TypeScript handlers', () => {
  it('are left alone when they fail event after event, and tried again with one; their neighbours go on', async () => {
    const world = new ProcessWorld();
    let isDown = true;
    const service = async () => {
      if (isDown) throw new Error('the service is down');
    };
    world.handlers = [handlerOf({ name: 'far', call: service }), handlerOf({ name: 'near' })];
    world.events = Array.from({ length: 10 }, (_, at) => takenEvent(`${at}`, 'far'));
    const processor = world.processor();
    const step = async () => {
      world.takes.length = 0;
      const { outcomes, pausedUntilMs } = await processor.step(neverAborted);
      return [outcomes, pausedUntilMs && pausedUntilMs - world.nowMs];
    };
    assert.deepEqual(await step(), [{ failed: 8 }, 500]);
    world.events.push(takenEvent('n', 'near'));
    assert.deepEqual(await step(), [{ success: 1 }, 500]);
    world.nowMs += 500;
    assert.deepEqual(await step(), [{ failed: 1 }, 1_000], 'one event asks, and the pause doubles');
    isDown = false;
    world.nowMs += 1_000;
    world.events.push(takenEvent('10', 'far'), takenEvent('11', 'far'));
    assert.deepEqual(await step(), [{ success: 1 }, 0], 'still one');
    assert.deepEqual(await step(), [{ success: 2 }, 0], 'then all that there is room for');
    assert.deepEqual(
      world.log.lines
        .filter(({ fields }) => fields?.handler)
        .map(({ level, message, fields }) => [level, message, fields?.handler]),
      [
        ['warn', 'a handler fails event after event and is left alone for a while', 'far'],
        ['info', 'a handler gets events again', 'far'],
      ],
    );
  });

  it('are asked by one event also where the call hangs', async () => {
    const world = new ProcessWorld();
    const calls: (() => void)[] = [];
    const call = () => new Promise((_, reject) => calls.push(() => reject(new Error('no answer'))));
    world.handlers = [handlerOf({ call })];
    world.events = Array.from({ length: 20 }, (_, at) => takenEvent(`${at}`, 'h'));
    const processor = world.processor();
    const stopping = new AbortController();
    const running = processor.run(stopping.signal);
    const settle = async () => {
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    };
    await settle();
    assert.equal(calls.length, 8);
    for (const fail of calls.splice(0)) fail();
    await settle();
    world.nowMs += 500;
    processor.wake();
    await settle();
    assert.equal(calls.length, 1, 'the others wait for what becomes of it');
    calls.pop()?.();
    stopping.abort();
    await running;
  });

  it('are left alone for events that fail by their last attempt as well', async () => {
    const world = new ProcessWorld();
    world.handlers = [handlerOf({ call: async () => Promise.reject(new Error('down')) })];
    world.finish = () => 'dead_letter';
    world.events = Array.from({ length: 20 }, (_, at) => takenEvent(`${at}`, 'h'));
    const { outcomes, pausedUntilMs } = await world.processor().drain(neverAborted);
    assert.deepEqual([outcomes, pausedUntilMs], [{ dead_letter: 8 }, world.nowMs + 500]);
  });

  it('are not left alone for events that fail by themselves, or whose lease is lost', async () => {
    const world = new ProcessWorld();
    const ends: Record<string, () => Promise<string | undefined>> = {
      fail: async () => Promise.reject(new Error('as told')),
      give_up: async () => Promise.reject(new PermanentError('as told')),
      skip: async () => 'nothing to do',
      act: async () => undefined,
    };
    world.handlers = [handlerOf({ apply: async ({ id }) => ends[id.split(' ')[0] ?? '']?.() })];
    const pausedAfter = async (...ids: string[]) => {
      const processor = world.processor();
      for (const id of ids) {
        world.events = [takenEvent(id, 'h')];
        await processor.step(neverAborted);
      }
      world.events = [takenEvent('act', 'h')];
      return (await processor.step(neverAborted)).total === 0;
    };
    assert.equal(await pausedAfter('fail 1', 'fail 2', 'fail 3'), true, 'three in a row');
    assert.equal(await pausedAfter('fail 1', 'fail 1', 'fail 1'), false, 'one that fails three times');
    assert.equal(await pausedAfter('fail 1', 'fail 2', 'act 3', 'fail 4'), false, 'a success between them');
    assert.equal(
      await pausedAfter('fail 1', 'fail 2', 'skip 3', 'fail 4'),
      false,
      'what was skipped was answered',
    );
    assert.equal(await pausedAfter('give_up 1', 'give_up 2', 'give_up 3'), false, 'what it gives up');
    world.isHeld = false;
    assert.equal(await pausedAfter('act 1', 'act 2', 'act 3'), false, 'lost leases');
  });
});

describe('SQL handlers', () => {
  const FAILED: Processed = { status: 'failed', error: 'as told', outcome: 'failed', verdict: 'failed' };
  const LAST: Processed = { ...FAILED, status: 'dead_letter', outcome: 'dead_letter' };
  const UNTRIED: Processed = { ...FAILED, error: null, verdict: 'again' };
  const GIVEN_UP: Processed = { ...LAST, verdict: 'dead_letter' };

  /** The pause after sets (of two, then four) whose events end so. */
  async function pauseAfter(...ends: Processed[]) {
    const world = new ProcessWorld();
    world.events = ends.map((_, at) => takenEvent(`${at}`));
    world.process = (ids) => new Map(ids.map((id) => [id, ends[Number(id)] ?? SUCCESS]));
    const processor = world.processor();
    await processor.step(neverAborted);
    const { pausedUntilMs } = await processor.step(neverAborted);
    return { world, processor, pauseMs: pausedUntilMs && pausedUntilMs - world.nowMs };
  }

  it('are left alone when all that was tried failed, and tried again with a set', async () => {
    const { world, processor, pauseMs } = await pauseAfter(FAILED, FAILED, LAST, UNTRIED, UNTRIED);
    assert.equal(pauseMs, 500);
    world.events = ['a', 'b', 'c', 'd'].map((id) => takenEvent(id));
    assert.equal((await processor.step(neverAborted)).total, 0, 'nothing is taken meanwhile');
    world.nowMs += 500;
    assert.equal((await processor.step(neverAborted)).total, 4, 'a set: the database tries three of it');
    assert.deepEqual(
      world.log.lines
        .map(({ message, fields }) => [message, fields?.handler])
        .filter(([, handler]) => handler),
      [
        ['a handler fails event after event and is left alone for a while', 'handler'],
        ['a handler gets events again', 'handler'],
      ],
    );
  });

  it('are not left alone for one success beside the failures, nor for what they gave up', async () => {
    assert.equal((await pauseAfter(FAILED, FAILED, FAILED, SUCCESS, FAILED)).pauseMs, 0);
    assert.equal((await pauseAfter(GIVEN_UP, GIVEN_UP, GIVEN_UP)).pauseMs, 0);
    assert.equal((await pauseAfter(FAILED, FAILED)).pauseMs, 0);
  });

  it('are left alone when they outlast their statement event after event', async () => {
    const world = new ProcessWorld();
    world.events = ['a', 'b', 'c'].map((id) => takenEvent(id));
    world.process = () => {
      throw coded('57014');
    };
    const processor = world.processor();
    assert.deepEqual((await processor.step(neverAborted)).outcomes, { slow: 2 });
    assert.equal((await processor.step(neverAborted)).pausedUntilMs, world.nowMs + 500);
  });
});
