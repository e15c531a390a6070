import assert from 'node:assert/strict';
import { afterEach, describe, it, mock } from 'node:test';
import {
  coded,
  grown,
  handlerOf,
  neverAborted,
  ProcessWorld,
  SUCCESS,
  takenEvent,
} from './process_support.ts';

const HEARTBEAT_MS = 1_000;
/** All that waits for promises and not for time. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

function gate() {
  let open: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), passed };
}

describe('a step of the processor', () => {
  it('takes of the lanes whose handlers it has, and does nothing where there are none', async () => {
    const world = new ProcessWorld();
    world.handlers = [handlerOf({ name: 'one' }), handlerOf({ name: 'two' })];
    const nothing = { total: 0, outcomes: {}, pausedUntilMs: 0 };
    assert.deepEqual(await world.processor(7).step(neverAborted), nothing);
    world.events = [takenEvent('a', 'three')];
    assert.deepEqual(await world.processor(7).step(neverAborted), nothing);
    assert.deepEqual([world.takes, world.sets, world.log.lines, world.metrics.lines], [[], [], [], []]);
    world.events = [takenEvent('a', 'two'), takenEvent('b', 'three'), takenEvent('c', 'one')];
    assert.deepEqual((await world.processor(7).step(neverAborted)).outcomes, { success: 2 });
    assert.deepEqual(
      world.events.map(({ id }) => id),
      ['b'],
    );
  });

  it('gives each handler its events on connections of its own, those without a handler as well', async () => {
    const world = new ProcessWorld();
    world.handlers = [handlerOf()];
    const ofSql = { ...takenEvent('a'), handler_name: 'app.act' };
    world.events = [ofSql, takenEvent('b', 'h'), { ...takenEvent('c'), lane: 0, handler_kind: null }];
    const { total, outcomes } = await world.step();
    assert.deepEqual([total, outcomes], [3, { success: 3 }]);
    assert.deepEqual(world.sets.toSorted(), [['a'], ['c']]);
    assert.deepEqual(world.connections.toSorted(), ['', 'app.act', 'h']);
    assert.deepEqual(
      world.calls.map(({ functionName, args }) => [functionName, args.p_id]),
      [
        ['webhook.hold_event', 'b'],
        ['webhook.finish_event', 'b'],
      ],
    );
  });

  it('has one set of an SQL handler under way, and does not wait with the other handlers', async () => {
    const world = new ProcessWorld();
    const { open, passed } = gate();
    world.process = async (ids) => {
      if (ids.includes('slow')) await passed;
      return new Map(ids.map((id) => [id, SUCCESS]));
    };
    const stopping = new AbortController();
    world.events = [takenEvent('slow'), takenEvent('next'), takenEvent('behind')];
    const processor = world.processor();
    const running = processor.run(stopping.signal);
    await settle();
    world.events.push({ ...takenEvent('other'), lane: 77 });
    processor.wake();
    await settle();
    assert.deepEqual(world.sets, [['slow', 'next'], ['other']]);
    open();
    await settle();
    await settle();
    assert.deepEqual(world.sets[2], ['behind']);
    stopping.abort();
    await running;
  });

  it('takes a suspect alone, beside the set of its lane', async () => {
    const world = new ProcessWorld();
    world.events = [
      takenEvent('a'),
      { ...takenEvent('s'), takeovers: 1 },
      { ...takenEvent('t'), takeovers: 1 },
    ];
    await world.step();
    assert.deepEqual(world.sets, [['s'], ['a']]);
  });

  it('calls an event that came back without an answer a lost lease', async () => {
    const world = new ProcessWorld();
    world.events = [takenEvent('a'), takenEvent('b')];
    world.process = () => new Map([['b', { status: 'failed', error: 'why', outcome: 'failed' }]]);
    assert.deepEqual((await world.step()).outcomes, { lost_lease: 1, failed: 1 });
    assert.deepEqual(
      world.log.lines.map(({ level, fields }) => [level, fields?.event_id, fields?.result, fields?.error]),
      [
        ['warn', 'event a', 'lost_lease', null],
        ['warn', 'event b', 'failed', 'why'],
      ],
    );
  });

  it('tries the halves of a set that failed in their order, and says what spoiled it', async () => {
    const world = new ProcessWorld();
    const processor = await grown(world);
    world.events = ['a', 'b', 'bad', 'c', 'd'].map((id) => takenEvent(id));
    world.process = (ids) => {
      if (ids.includes('bad')) throw coded('23503');
      return new Map(ids.map((id) => [id, SUCCESS]));
    };
    assert.deepEqual((await processor.step(neverAborted)).outcomes, { success: 4, failed: 1 });
    assert.deepEqual(world.sets.slice(1), [['a', 'b'], ['bad', 'c', 'd'], ['bad'], ['c', 'd']]);
    const error = 'failed with 23503';
    assert.deepEqual(world.finished, [{ id: 'bad', lease: 'lease of bad', outcome: 'failed', error }]);
    assert.deepEqual(
      world.log.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields?.error),
      [error],
    );
  });

  it('says how long each took, how often it was tried, and traces it', async () => {
    const world = new ProcessWorld();
    world.events = [takenEvent('a')];
    world.process = (ids) => {
      world.nowMs += 250;
      return new Map(ids.map((id) => [id, SUCCESS]));
    };
    await world.step();
    assert.deepEqual(world.log.lines, [
      {
        level: 'debug',
        message: 'event processed',
        fields: {
          event_id: 'event a',
          event_type: 'order.paid',
          webhook_id: 'the webhook',
          provider: 'shop',
          attempts: 2,
          takeovers: 0,
          duration_ms: 250,
          result: 'success',
          error: null,
        },
      },
    ]);
    assert.deepEqual(
      world.spans.map(({ name, subject, startMs, endMs }) => ({ name, subject, startMs, endMs })),
      [{ name: 'process', subject: 'a', startMs: 5_000, endMs: 5_250 }],
    );
  });
});

describe('TypeScript handlers in a step', () => {
  it('run eight events at a time each, and the ninth when one has ended', async () => {
    const world = new ProcessWorld();
    const { open, passed } = gate();
    const running = { slow: 0, fast: 0 };
    const most = { slow: 0, fast: 0 };
    const holding = (name: 'slow' | 'fast', wait: Promise<void>) =>
      handlerOf({
        name,
        apply: async () => {
          most[name] = Math.max(most[name], ++running[name]);
          await wait;
          running[name]--;
        },
      });
    world.handlers = [holding('slow', passed), holding('fast', Promise.resolve())];
    world.events = Array.from({ length: 40 }, (_, index) =>
      takenEvent(`${index}`, index % 2 === 0 ? 'slow' : 'fast'),
    );
    const drain = world.processor().drain(neverAborted);
    for (let turn = 0; turn < 20; turn++) await settle();
    // All twenty of the one have ended while the other holds its eight.
    assert.deepEqual([running, world.events.length], [{ slow: 8, fast: 0 }, 12]);
    open();
    const { total, outcomes } = await drain;
    assert.deepEqual([total, outcomes, most.slow], [40, { success: 40 }, 8]);
  });

  it('get the event of their name, and an event of an unknown handler is handed back', async () => {
    const world = new ProcessWorld();
    const seen: string[] = [];
    const noting = (name: string) =>
      handlerOf({ name, apply: async ({ id }) => void seen.push(`${name} ${id}`) });
    world.handlers = [noting('one'), noting('two'), noting('')];
    const nameless = { ...takenEvent('c', 'none'), handler_name: null };
    world.events = [takenEvent('a', 'two'), takenEvent('b', 'one'), takenEvent('d', 'gone')];
    // Its lane was another handler's when it was taken.
    world.events.unshift({ ...takenEvent('e', 'gone'), lane: takenEvent('a', 'two').lane });
    assert.deepEqual((await world.step()).outcomes, { success: 2, handed_back: 1 });
    assert.deepEqual(seen.sort(), ['one b', 'two a']);
    world.events = [nameless];
    await world.step();
    assert.deepEqual(seen.at(-1), ' c');
  });

  it('end what they have begun when the signal comes, and take no more', async () => {
    const world = new ProcessWorld();
    const stopping = new AbortController();
    const { open, passed } = gate();
    world.handlers = [handlerOf({ apply: () => passed })];
    world.events = Array.from({ length: 10 }, (_, index) => takenEvent(`${index}`, 'h'));
    const drain = world.processor().drain(stopping.signal);
    await settle();
    stopping.abort();
    open();
    assert.deepEqual((await drain).outcomes, { success: 8 });
    assert.deepEqual([world.events.length, world.finished], [2, []]);
  });

  it('are not begun when the signal came before: the events are handed back', async () => {
    const world = new ProcessWorld();
    const stopping = new AbortController();
    stopping.abort();
    world.handlers = [handlerOf()];
    world.events = [takenEvent('a', 'h')];
    assert.deepEqual((await world.step(stopping.signal)).outcomes, { handed_back: 1 });
    assert.deepEqual(
      world.finished.map(({ id, outcome, error }) => [id, outcome, error]),
      [['a', 'pending', null]],
    );
  });

  it('fail the step when the database goes away under one, after the others have ended', async () => {
    const world = new ProcessWorld();
    const ended: string[] = [];
    const { open, passed } = gate();
    world.handlers = [
      handlerOf({
        apply: async ({ id }) => {
          await passed;
          ended.push(id);
        },
      }),
    ];
    const { transact } = world;
    world.transact = async (work, timeoutMs) => {
      if (world.limitsMs.length > 0) return transact(work, timeoutMs);
      world.limitsMs.push(timeoutMs);
      throw coded('57P01');
    };
    world.events = [takenEvent('away', 'h'), takenEvent('slow', 'h')];
    const step = world.step();
    setImmediate(open);
    await assert.rejects(step, /57P01/);
    assert.deepEqual(ended, ['slow']);
    assert.deepEqual(world.finished, []);
  });
});

describe('the heartbeat of the processor', () => {
  afterEach(() => mock.timers.reset());

  it('extends the leases of what is under way each second until it has ended', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    const world = new ProcessWorld();
    const { open, passed } = gate();
    world.handlers = [handlerOf({ apply: () => passed })];
    world.events = [takenEvent('a', 'h'), takenEvent('b', 'h')];
    const step = world.step();
    await settle();
    mock.timers.tick(HEARTBEAT_MS - 1);
    assert.deepEqual(world.extended, []);
    mock.timers.tick(1);
    mock.timers.tick(HEARTBEAT_MS);
    assert.deepEqual(world.extended, [
      ['a', 'b'],
      ['a', 'b'],
    ]);
    open();
    await step;
    mock.timers.tick(HEARTBEAT_MS);
    assert.equal(world.extended.length, 2);
  });

  it('that fails is a line in the log and no failure of the event', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    const world = new ProcessWorld();
    const { open, passed } = gate();
    const cause = coded('08006');
    world.extend = () => Promise.reject(cause);
    world.handlers = [handlerOf({ apply: () => passed })];
    world.events = [takenEvent('a', 'h')];
    const step = world.step();
    await settle();
    mock.timers.tick(HEARTBEAT_MS);
    await settle();
    open();
    assert.deepEqual((await step).outcomes, { success: 1 });
    assert.deepEqual(world.log.lines[0], { level: 'warn', message: 'heartbeat failed', fields: { cause } });
  });

  it('beats for an event that is run alone, and stops with it', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    const world = new ProcessWorld();
    const { open, passed } = gate();
    world.handlers = [handlerOf({ apply: () => passed })];
    world.events = [takenEvent('a', 'h')];
    const run = world.processor().runOne('a', neverAborted);
    await settle();
    mock.timers.tick(HEARTBEAT_MS);
    open();
    await run;
    mock.timers.tick(HEARTBEAT_MS);
    assert.deepEqual(world.extended, [['a']]);
  });
});

describe('one event run by its id', () => {
  it('takes effect, and is told like any other', async () => {
    const world = new ProcessWorld();
    world.handlers = [
      handlerOf({
        apply: async () => {
          world.nowMs += 40;
          return 'not for us';
        },
      }),
    ];
    world.events = [takenEvent('a', 'h')];
    const became = await world.processor().runOne('a', neverAborted);
    assert.deepEqual(became, { status: 'skipped', error: 'not for us', outcome: 'skipped' });
    assert.deepEqual(world.begun, [{ id: 'a', names: ['h'] }]);
    const [line] = world.log.lines;
    assert.deepEqual(
      [line?.fields?.result, line?.fields?.duration_ms, line?.fields?.error],
      ['skipped', 40, 'not for us'],
    );
  });

  it('is left alone where it has ended or another holds it', async () => {
    const world = new ProcessWorld();
    world.handlers = [handlerOf()];
    assert.equal(await world.processor().runOne('gone', neverAborted), undefined);
    assert.deepEqual([world.calls, world.log.lines], [[], []]);
  });
});
