import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HttpError } from '#core/errors.ts';
import { NO_TRACER, type TracedSpan } from '#core/ports.ts';
import { Inline } from '#core/webhook/inline.ts';
import type { Endpoint, EventStatus, Processed, Recorded } from '#core/webhook/ports.ts';
import type { ReadEvent } from '#core/webhook/provider.ts';
import { memoryLog } from '../core/support.ts';
import { coded, metricLines } from './process_support.ts';

const ENDPOINT = { webhook_id: 'the webhook', provider: 'shop' } as Endpoint;
const EVENT = { eventId: 'event a', eventType: 'order.paid' } as ReadEvent;
const recorded = (status: EventStatus = 'pending', id = 'a'): Recorded => ({
  ordinal: 1,
  id,
  outcome: 'recorded',
  status,
  lane: 7,
});

function open(answers: Record<string, string> = {}, here?: (id: string) => Promise<Processed | undefined>) {
  const world = {
    nowMs: 5_000,
    tried: [] as string[],
    lanes: [] as number[],
    failure: undefined as unknown,
    spans: [] as TracedSpan[],
  };
  const log = memoryLog();
  const metrics = metricLines();
  const inline = new Inline({
    store: {
      processEvent: async (id, lane) => {
        world.tried.push(id);
        world.lanes.push(lane);
        world.nowMs += 30;
        if (world.failure !== undefined) throw world.failure;
        return { status: null, error: 'why', outcome: answers[id] ?? 'success' };
      },
    },
    ...(here && { runTypescript: here }),
    log,
    metrics,
    tracer: { ...NO_TRACER, isOn: true, record: (span) => void world.spans.push(span) },
    now: () => world.nowMs,
  });
  const process = (row = recorded()) => inline.process(ENDPOINT, EVENT, row);
  return { process, world, log, metrics };
}

describe('an event that takes effect while its provider waits', () => {
  const RESULTS = { success: 'processed', skipped: 'skipped', dead_letter: 'dead_letter' };
  for (const [outcome, result] of Object.entries({ ...RESULTS, failed: 'failed', lost_lease: 'failed' }))
    it(`that became ${outcome} is ${result}`, async () => {
      const { process, world } = open({ a: outcome });
      assert.equal(await process(), result);
      assert.deepEqual(world.tried, ['a']);
    });

  for (const [status, result] of Object.entries(RESULTS))
    it(`is not tried again once it is ${status}`, async () => {
      const { process, world, log } = open();
      assert.equal(await process(recorded(status as EventStatus)), result);
      assert.deepEqual([world.tried, log.lines], [[], []]);
    });

  it('is tried again where it failed before', async () => {
    const { process, world } = open();
    assert.equal(await process(recorded('failed')), 'processed');
    assert.deepEqual(world.tried, ['a']);
  });

  it('is tried once for all deliveries that wait together, and anew for one that comes later', async () => {
    const { process, world } = open({ a: 'failed' });
    const both = await Promise.all([process(), process(), process(recorded('pending', 'b'))]);
    assert.deepEqual(both, ['failed', 'failed', 'processed']);
    assert.deepEqual(world.tried, ['a', 'b']);
    await process();
    assert.deepEqual(world.tried, ['a', 'b', 'a']);
  });

  it('is tried on the connections of its lane', async () => {
    const { process, world } = open();
    await process();
    assert.deepEqual(world.lanes, [7]);
  });

  it('is only recorded where another server is at it', async () => {
    const { process, log, metrics } = open({ a: 'in_flight' });
    assert.equal(await process(), 'recorded');
    assert.deepEqual([log.lines, metrics.lines], [[], []]);
  });

  for (const [code, answer] of [
    // The handler took longer than a statement may, or waited for a lock that long.
    ['57014', 'processing_failed'],
    ['55P03', 'processing_failed'],
    ['08006', 'database_unavailable'],
  ] as const)
    it(`that failed with ${code} is refused as ${answer}, and the hint says that it is recorded`, async () => {
      const { process, world } = open();
      world.failure = coded(code);
      await assert.rejects(process(), (error: HttpError) => {
        assert.deepEqual([error.kind.code, error.kind.retryable, error.cause], [answer, true, world.failure]);
        assert.match(error.hint, /is recorded/);
        return true;
      });
    });

  it('that failed with an unknown error is told as it is', async () => {
    const { process, world } = open();
    world.failure = coded('XX000');
    await assert.rejects(process(), (error) => error === world.failure);
  });

  it('is told to the log and the traces with the time it took', async () => {
    const { process, world, log } = open({ a: 'failed' });
    await process();
    assert.deepEqual(log.lines, [
      {
        level: 'warn',
        message: 'event processed',
        fields: {
          event_id: 'event a',
          event_type: 'order.paid',
          webhook_id: 'the webhook',
          provider: 'shop',
          attempts: undefined,
          takeovers: undefined,
          duration_ms: 30,
          result: 'failed',
          error: 'why',
        },
      },
    ]);
    assert.deepEqual(
      world.spans.map(({ subject, startMs, endMs, failure }) => [subject, startMs, endMs, failure]),
      [['a', 5_000, 5_030, 'why']],
    );
  });
});

describe('inline events of one handler', () => {
  const EVENTS = 20;

  /** Effects that last until they are ended, and the events whose effects have begun. */
  function openHeld(isTypescript: boolean, share?: (limit: number) => number) {
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    const effect = (id: string): Promise<Processed> => {
      begun.push(id);
      return new Promise((resolve) => {
        ends.push(() => resolve({ status: null, error: null, outcome: 'success' }));
      });
    };
    const typescript: Processed = { status: null, error: null, outcome: 'typescript' };
    const inline = new Inline({
      store: { processEvent: async (id) => (isTypescript ? typescript : effect(id)) },
      ...(isTypescript && { runTypescript: effect }),
      ...(share && { share }),
      log: memoryLog(),
      metrics: metricLines(),
      now: () => 0,
    });
    const send = (webhookId: string, count: number, lane = 7) =>
      Array.from({ length: count }, (_, at) =>
        inline.process({ ...ENDPOINT, webhook_id: webhookId }, EVENT, {
          ...recorded('pending', `${webhookId} ${lane} ${at}`),
          lane,
        }),
      );
    /** One effect after the other ends. */
    const endAll = async () => {
      for (let end = ends.shift(); end !== undefined; end = ends.shift()) {
        end();
        await settled();
      }
    };
    return { begun, send, endAll };
  }

  for (const [kind, limit] of [
    ['SQL', 4],
    ['TypeScript', 8],
  ] as const) {
    it(`take effect ${limit} at a time where it is written in ${kind}, and those of another beside them`, async () => {
      const { begun, send, endAll } = openHeld(kind === 'TypeScript');
      const sent = send('a', EVENTS);
      await settled();
      assert.equal(begun.length, limit);
      const other = send('b', 1, 8);
      await settled();
      assert.deepEqual(begun.slice(limit), ['b 8 0']);
      await endAll();
      assert.deepEqual(new Set(await Promise.all([...sent, ...other])), new Set(['processed']));
    });

    it(`have the share of a process where it is written in ${kind}`, async () => {
      const { begun, send, endAll } = openHeld(kind === 'TypeScript', (most) => most / 2);
      const sent = send('a', EVENTS);
      await settled();
      assert.equal(begun.length, limit / 2);
      await endAll();
      await Promise.all(sent);
    });

    it(`take effect for each endpoint in turn where it is written in ${kind}`, async () => {
      const { begun, send, endAll } = openHeld(kind === 'TypeScript');
      const crowd = send('crowd', EVENTS);
      await settled();
      const neighbour = send('neighbour', 3);
      await settled();
      await endAll();
      await Promise.all([...crowd, ...neighbour]);
      const turns = begun.slice(limit, limit + 6).map((id) => id.split(' ')[0]);
      assert.deepEqual(turns, ['crowd', 'neighbour', 'crowd', 'neighbour', 'crowd', 'neighbour']);
    });

    it(`that wait 3 s where it is written in ${kind} are refused for now, and never begin`, async (t) => {
      const { begun, send, endAll } = openHeld(kind === 'TypeScript');
      t.mock.timers.enable({ apis: ['setTimeout'] });
      const sent = send('a', limit + 1);
      await settled();
      t.mock.timers.tick(3_000);
      await assert.rejects(sent[limit] as Promise<unknown>, (error: HttpError) => {
        assert.deepEqual([error.kind.http, error.kind.retryable], [503, true]);
        assert.match(error.hint, /is recorded/);
        return true;
      });
      await endAll();
      await Promise.all(sent.slice(0, limit));
      assert.equal(begun.length, limit);
    });
  }
});

describe('an inline event whose handler is TypeScript', () => {
  const ran = (outcome: string) => async () => ({ status: null, error: null, outcome });

  it('runs here, and the one who ran it has told of it', async () => {
    const ids: string[] = [];
    const { process, log } = open({ a: 'typescript' }, async (id) => {
      ids.push(id);
      return ran('success')();
    });
    assert.equal(await process(), 'processed');
    assert.deepEqual([ids, log.lines], [['a'], []]);
  });

  it('is only recorded where its handler is not here, or another holds it', async () => {
    assert.equal(await open({ a: 'typescript' }).process(), 'recorded');
    assert.equal(await open({ a: 'typescript' }, async () => undefined).process(), 'recorded');
  });

  it('has failed where the handler has', async () => {
    assert.equal(await open({ a: 'typescript' }, ran('failed')).process(), 'failed');
    assert.equal(await open({ a: 'typescript' }, ran('dead_letter')).process(), 'dead_letter');
  });
});

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
