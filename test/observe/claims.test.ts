import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ClaimRoutes } from '#core/claim.ts';
import { NO_TRACER, type TracedSpan } from '#core/ports.ts';
import { askRoutes, CLAIM_ID, memoryPorts } from '../core/support.ts';

function observedRoutes() {
  const ports = memoryPorts();
  const told: unknown[][] = [];
  const spans: TracedSpan[] = [];
  const door = new ClaimRoutes({
    ...ports,
    metrics: {
      count: (name, labels, by) => told.push([name, labels, by]),
      observe: (name, _, value) => told.push(name.endsWith('_seconds') ? [name] : [name, value]),
    },
    tracer: { ...NO_TRACER, isOn: true, record: (span) => spans.push(span) },
    now: Date.now,
  });
  const ask = askRoutes(door.routes());
  const claim = (user: string, headers: Record<string, string> = {}) =>
    ask({ method: 'POST', path: '/v1/pools/p/claims', headers, body: { user_id: user } });
  return { claim, told, spans, memory: ports.memory };
}

describe('the claim door', () => {
  it('counts a crowd once a batch, not once a claim', async () => {
    const { claim, told, memory } = observedRoutes();
    await Promise.all(Array.from({ length: 50 }, (_, n) => claim(`user ${n}`)));
    assert.equal(memory.batches, 1);
    assert.deepEqual(told, [
      ['sluice_claims_total', { outcome: 'claimed' }, 50],
      ['sluice_claim_batch_size', 50],
      ['sluice_claim_batch_seconds'],
    ]);
  });

  it('begins a trace with a claim, goes on with it for a retry, and has none for a refusal', async () => {
    const { claim, spans, memory } = observedRoutes();
    await claim('ann');
    memory.result = 'same';
    await claim('ann');
    memory.result = 'sold_out';
    await claim('bob');
    assert.deepEqual(
      spans.map(({ subject, isRoot, attributes }) => [subject, isRoot, attributes['sluice.outcome']]),
      [
        [CLAIM_ID, true, 'claimed'],
        [CLAIM_ID, false, 'same'],
      ],
    );
    assert.doesNotMatch(JSON.stringify(spans), /ann/);
  });

  it('takes the trace that its caller names along, and no other text', async () => {
    const { claim, spans, memory } = observedRoutes();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    for (const sent of [traceparent, 'nonsense', `${traceparent}, ${traceparent}`])
      assert.equal((await claim('ann', { traceparent: sent })).status, 201);
    assert.equal((await claim('bob')).status, 201);
    assert.deepEqual(
      memory.seen.map((request) => request.traceparent),
      [traceparent, undefined, undefined, undefined],
    );
    assert.deepEqual(
      spans.map(({ caller }) => caller?.spanId),
      ['b7ad6b7169203331', undefined, undefined, undefined],
    );
  });
});
