import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NO_TRACER, type TracedSpan } from '#core/ports.ts';
import { countDeadLetter, type Outcome, tellOutcome } from '#core/webhook/outcome.ts';
import type { Endpoint, Recorded } from '#core/webhook/ports.ts';
import type { ReadEvent } from '#core/webhook/provider.ts';
import { traceOutcome, traceRecorded } from '#core/webhook/trace.ts';
import { memoryLog } from '../core/support.ts';
import { metricLines } from './process_support.ts';

const outcome = (result: string, error: string | null = null): Outcome => ({
  webhookId: 'w',
  provider: 'hmac:billing',
  eventId: 'e',
  eventType: 't',
  attempts: 3,
  takeovers: 1,
  result,
  error,
  durationMs: 1_500.25,
});

describe('what became of an event', () => {
  it('is counted and timed under the provider’s name, without its endpoint', () => {
    const metrics = metricLines();
    tellOutcome(outcome('success'), memoryLog(), metrics);
    assert.deepEqual(metrics.lines, [
      'webhook_processing_total webhook_id=w provider=hmac result=success 1',
      'webhook_processing_seconds provider=hmac result=success 1.50025',
    ]);
  });

  it('is counted as a dead letter too where it is one', () => {
    const metrics = metricLines();
    tellOutcome(outcome('dead_letter'), memoryLog(), metrics);
    assert.equal(
      metrics.lines.at(-1),
      'webhook_dead_letter_total webhook_id=w provider=hmac reason=handler_error 1',
    );
    countDeadLetter({ webhook_id: 'w', provider: 'stripe' }, 'quarantine', metrics);
    assert.equal(
      metrics.lines.at(-1),
      'webhook_dead_letter_total webhook_id=w provider=stripe reason=quarantine 1',
    );
  });

  for (const [result, level] of Object.entries({
    success: 'debug',
    skipped: 'debug',
    failed: 'warn',
    dead_letter: 'warn',
    lost_lease: 'warn',
  }))
    it(`is a line at level ${level} where it is ${result}`, () => {
      const log = memoryLog();
      tellOutcome(outcome(result, 'why'), log, metricLines());
      const names = { event_id: 'e', event_type: 't', webhook_id: 'w', provider: 'hmac' };
      const fields = { ...names, attempts: 3, takeovers: 1 };
      assert.deepEqual(log.lines, [
        {
          level,
          message: 'event processed',
          fields: { ...fields, duration_ms: 1_500, result, error: 'why' },
        },
      ]);
    });

  it('writes no line for a good outcome when the debug level is off', () => {
    const log = { ...memoryLog(), debugEnabled: false };
    for (const result of ['success', 'skipped', 'failed']) tellOutcome(outcome(result), log, metricLines());
    assert.deepEqual(
      log.lines.map(({ fields }) => fields?.result),
      ['failed'],
    );
  });
});

describe('the trace of an event', () => {
  const tracing = (isOn = true) => {
    const spans: TracedSpan[] = [];
    return {
      spans,
      tracer: { ...NO_TRACER, isOn, record: (span: TracedSpan) => void spans.push(span) },
      now: () => 9_000,
    };
  };
  const ENDPOINT = { webhook_id: 'w', provider: 'stripe' } as Endpoint;
  const events = ['e1', 'e2', 'e3', 'e4'].map((eventId) => ({ eventId }) as ReadEvent);
  const recorded = (['recorded', 'quarantined', 'duplicate', 'body_differs'] as const).map(
    (result, index) => ({ id: `row ${index + 1}`, outcome: result }) as Recorded,
  );

  it('has a root for what is new, and a span below it for what came again', () => {
    const ports = tracing();
    traceRecorded(ENDPOINT, events, recorded, 8_000, ports);
    assert.deepEqual(ports.spans[0], {
      name: 'webhook',
      subject: 'row 1',
      isRoot: true,
      kind: 'server',
      startMs: 8_000,
      endMs: 9_000,
      attributes: {
        'sluice.event_id': 'e1',
        'sluice.webhook_id': 'w',
        'sluice.provider': 'stripe',
        'sluice.outcome': 'recorded',
      },
    });
    assert.deepEqual(
      ports.spans.map(({ subject, isRoot, attributes }) => [subject, isRoot, attributes['sluice.event_id']]),
      [
        ['row 1', true, 'e1'],
        ['row 2', true, 'e2'],
        ['row 3', false, 'e3'],
        ['row 4', false, 'e4'],
      ],
    );
  });

  it('has a span for each try, which ends now and began as long ago as it took', () => {
    const ports = tracing();
    traceOutcome('row 1', { ...outcome('success'), durationMs: 400 }, ports);
    assert.deepEqual(ports.spans, [
      {
        name: 'process',
        subject: 'row 1',
        kind: 'consumer',
        startMs: 8_600,
        endMs: 9_000,
        attributes: {
          'sluice.event_id': 'e',
          'sluice.event_type': 't',
          'sluice.webhook_id': 'w',
          'sluice.provider': 'hmac:billing',
          'sluice.outcome': 'success',
        },
      },
    ]);
  });

  it('says what went wrong, where something did', () => {
    const ports = tracing();
    for (const [result, error] of [
      ['failed', 'why'],
      ['lost_lease', null],
      ['success', null],
      ['skipped', 'not for us'],
    ] as const)
      traceOutcome('row', outcome(result, error), ports);
    assert.deepEqual(
      ports.spans.map(({ failure }) => failure),
      ['why', 'lost_lease', undefined, undefined],
    );
  });

  it('is not put together without a tracer', () => {
    const ports = tracing(false);
    traceOutcome('row', outcome('failed'), ports);
    traceRecorded(ENDPOINT, events, recorded, 8_000, ports);
    assert.deepEqual(ports.spans, []);
    assert.doesNotThrow(() => traceOutcome('row', outcome('failed'), { now: () => 0 }));
  });
});
