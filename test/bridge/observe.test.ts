// What a step tells the metrics, the traces and the log.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Delivery } from '#core/bridge/delivery.ts';
import { labelOfTarget, tellCall, tellCommit, tellGroup } from '#core/bridge/observe.ts';
import { NO_TRACER, type TracedSpan } from '#core/ports.ts';
import { metricLines } from '../webhook/process_support.ts';
import { databaseError, payload, poolConfig, uuid, World } from './support.ts';

const HOOK = 'https://hook.example:8443/secret-path';
const CALL = { url: HOOK, startedMs: 9_000, spanId: undefined };

const deliveryOf = (msg_id: number, message: unknown = payload(msg_id)) =>
  new Delivery({ msg_id, read_ct: 2, attempts: 1, takeovers: 0, message, claim_state: 'queued' });

function observing(isOn = true) {
  const spans: TracedSpan[] = [];
  const metrics = metricLines();
  const tracer = { ...NO_TRACER, isOn, record: (span: TracedSpan) => void spans.push(span) };
  return { spans, lines: metrics.lines, ports: { metrics, tracer, now: () => 9_500 } };
}

const names = (n: number) => ({
  'sluice.claim_id': uuid(n),
  'sluice.pool_id': 'pool',
  'messaging.message.id': n,
  'sluice.read_ct': 2,
});

describe('a step', () => {
  it('is counted by outcome and timed in seconds', () => {
    const { lines, ports } = observing();
    const became = new Map([
      [1, 'committed'],
      [2, 'retry'],
      [3, 'committed'],
      [4, 'committed'],
    ]);
    tellGroup(
      [1, 2, 3, 4].map((n) => deliveryOf(n)),
      became,
      9_000,
      ports,
    );
    assert.deepEqual(lines, [
      'sluice_bridge_deliveries_total outcome=committed 3',
      'sluice_bridge_deliveries_total outcome=retry 1',
      'sluice_bridge_step_seconds 0.5',
    ]);
  });

  it('is a span for each message with the names of its claim; a failure where an operator has to look', () => {
    const { spans, ports } = observing();
    const [one, two, three, four] = [1, 2, 3, 4].map((n) => deliveryOf(n)) as [
      Delivery,
      Delivery,
      Delivery,
      Delivery,
    ];
    two.end('retry', 'why');
    const nameless = deliveryOf(5, 'no object');
    const became = new Map([
      [1, 'committed'],
      [2, 'retry'],
      [4, 'gone'],
    ]);
    tellGroup([one, two, three, four, nameless], became, 9_000, ports);
    assert.deepEqual(spans[0], {
      name: 'bridge',
      subject: uuid(1),
      kind: 'consumer',
      startMs: 9_000,
      endMs: 9_500,
      attributes: { ...names(1), 'sluice.outcome': 'committed', 'sluice.batch_size': 5 },
    });
    assert.deepEqual(
      spans.map(({ subject, attributes, failure }) => [subject, attributes['sluice.outcome'], failure]),
      [
        [uuid(1), 'committed', undefined],
        [uuid(2), 'retry', 'why'],
        [uuid(3), 'lost_lease', 'lost_lease'],
        [uuid(4), 'gone', undefined],
      ],
    );
  });

  it('that ended in a refusal is nothing to look at', () => {
    const { spans, ports } = observing();
    tellGroup([deliveryOf(1)], new Map([[1, 'refused']]), 9_000, ports);
    assert.equal(spans[0]?.failure, undefined);
  });
});

describe('a commit', () => {
  it('is counted by what became of the tickets, and timed as answered', () => {
    const { lines, spans, ports } = observing();
    tellCommit(
      [1, 2, 3].map((n) => deliveryOf(n)),
      ['committed', 'already', 'committed'],
      9_000,
      ports,
    );
    assert.deepEqual(lines, [
      'sluice_ledger_tickets_total outcome=committed 2',
      'sluice_ledger_tickets_total outcome=already 1',
      'sluice_ledger_commit_seconds result=answered 0.5',
    ]);
    assert.deepEqual(spans[1], {
      name: 'ledger',
      subject: uuid(2),
      kind: 'client',
      startMs: 9_000,
      endMs: 9_500,
      attributes: { ...names(2), 'sluice.outcome': 'already' },
    });
  });

  it('that failed has no tickets, and says why in each span', () => {
    for (const [error, failure] of [
      [new Error('no connection'), 'no connection'],
      ['just no', 'just no'],
    ] as const) {
      const { lines, spans, ports } = observing();
      tellCommit([deliveryOf(1)], error, 9_000, ports);
      assert.deepEqual(lines, ['sluice_ledger_commit_seconds result=failed 0.5']);
      assert.deepEqual([spans[0]?.attributes['sluice.outcome'], spans[0]?.failure], ['failed', failure]);
    }
  });
});

describe('a call to a hook', () => {
  it('is known by its host: the rest of its address may hold a secret', () => {
    assert.equal(labelOfTarget(HOOK), 'hook.example:8443');
    assert.equal(labelOfTarget('ledger'), 'ledger');
  });

  for (const [result, status, failure] of [
    [200, 200, undefined],
    [499, 499, undefined],
    [500, 500, 'status 500'],
    [new Error('cut'), undefined, 'cut'],
    ['cut', undefined, 'cut'],
  ] as const)
    it(`that ended with ${result} has status ${status} and failure ${failure}`, () => {
      const { spans, ports } = observing();
      tellCall(deliveryOf(1), CALL, result, ports);
      const attributes = { ...names(1), 'server.address': 'hook.example:8443' };
      assert.deepEqual(spans, [
        {
          name: 'hook call',
          subject: uuid(1),
          kind: 'client',
          startMs: 9_000,
          endMs: 9_500,
          attributes:
            status === undefined ? attributes : { ...attributes, 'http.response.status_code': status },
          ...(failure !== undefined && { failure }),
        },
      ]);
    });
});

describe('without a tracer', () => {
  it('no span is put together, and the metrics are told all the same', () => {
    const { spans, lines, ports } = observing(false);
    tellGroup([deliveryOf(1)], new Map(), 9_000, ports);
    tellCommit([deliveryOf(1)], ['committed'], 9_000, ports);
    tellCall(deliveryOf(1), CALL, 200, ports);
    assert.deepEqual([spans, lines.length], [[], 4]);
    const { tracer: _, ...bare } = ports;
    assert.doesNotThrow(() => tellGroup([deliveryOf(1)], new Map(), 9_000, bare));
  });
});

describe('the log of deliveries', () => {
  it('has routine at debug level, and above it what an operator may look for at night', async () => {
    const world = new World();
    world.pools.set('wanting', poolConfig('wanting', { validation_webhook_url: HOOK }));
    world.answer = () => 422;
    world.finalizeBatch = (payloads) =>
      payloads.map(({ user_id }) => (user_id === 'user 2' ? 'conflict' : 'committed'));
    for (const message of [payload(1), payload(2), payload(3, { pool_id: 'wanting' })]) world.send(message);
    world.send(payload(4), { claim_state: 'released' });
    await world.step();
    assert.deepEqual(
      world.log
        .filter(({ message }) => message === 'delivery')
        .map(({ level, claim_id, outcome }) => [claim_id, level, outcome])
        .sort(),
      [
        [uuid(1), 'debug', 'committed'],
        [uuid(2), 'warn', 'dead_letter'],
        [uuid(3), 'debug', 'refused'],
        [uuid(4), 'debug', 'gone'],
      ],
    );
  });

  it('says that the ledger is away, for how many, and why', async () => {
    const world = new World();
    const cause = databaseError('08006');
    world.finalizeBatch = () => {
      throw cause;
    };
    for (const n of [1, 2]) world.send(payload(n));
    await world.step();
    assert.deepEqual(
      world.log.filter(({ level }) => level === 'warn'),
      [{ level: 'warn', message: 'the ledger is unavailable', messages: 2, cause }],
    );
  });
});
