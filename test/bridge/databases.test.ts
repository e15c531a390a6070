// Which SQL function each question of the bridge is, and with which arguments.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Finish, Payload } from '#core/bridge/ports.ts';
import { createIntake, createLedger } from '#core/bridge/store.ts';
import { payload } from './support.ts';

function calling(rows: unknown[]) {
  const asked: [string, Record<string, unknown>][] = [];
  const call = async <Row>(name: string, args: Record<string, unknown>) => {
    asked.push([name, args]);
    return rows as Row[];
  };
  return { asked, intake: createIntake(call), ledger: createLedger(call) };
}

describe('the intake', () => {
  it('takes a batch under a lease, without the pools that are paused', async () => {
    const { asked, intake } = calling([{ msg_id: 1 }]);
    const wants = [
      { lane: 0, wanted: 10 },
      { lane: 7, wanted: 3 },
    ];
    assert.deepEqual(await intake.take(wants, 30), [{ msg_id: 1 }]);
    assert.deepEqual(await intake.takeSuspect([0, 7], 30), [{ msg_id: 1 }]);
    assert.deepEqual(asked, [
      ['bridge_take', { p_lanes: [0, 7], p_wanted: [10, 3], p_lease_sec: 30 }],
      ['bridge_take_suspect', { p_lanes: [0, 7], p_lease_sec: 30 }],
    ]);
  });

  it('gives the rules of pools', async () => {
    const { asked, intake } = calling([{ pool_id: 'p' }]);
    assert.deepEqual(await intake.config(['p', 'q']), [{ pool_id: 'p' }]);
    assert.deepEqual(asked, [['bridge_config', { p_pool_ids: ['p', 'q'] }]]);
  });

  it('tells the lanes that have messages', async () => {
    const { asked, intake } = calling([{ lane: 7, pool_id: 'p' }]);
    assert.deepEqual(await intake.lanes(), [{ lane: 7, pool_id: 'p' }]);
    assert.deepEqual(asked, [['bridge_lanes', {}]]);
  });

  it('extends leases by message and delivery', async () => {
    const { asked, intake } = calling([{ bridge_extend: 2 }]);
    const held = [
      { msg_id: 1, read_ct: 4 },
      { msg_id: 2, read_ct: 5 },
    ];
    assert.deepEqual(await intake.extend(held, 30), [2]);
    assert.deepEqual(asked, [['bridge_extend', { p_msg_ids: [1, 2], p_read_cts: [4, 5], p_lease_sec: 30 }]]);
  });

  it('finishes column by column, and says what became of each', async () => {
    const { asked, intake } = calling([
      { msg_id: 1, outcome: 'committed' },
      { msg_id: 2, outcome: 'lost_lease' },
    ]);
    const finishes: Finish[] = [
      { msg_id: 1, read_ct: 4, verdict: 'committed', reason: null, delay_ms: 0 },
      { msg_id: 2, read_ct: 5, verdict: 'retry', reason: 'why', delay_ms: 500 },
    ];
    assert.deepEqual(
      [...(await intake.finish(finishes))],
      [
        [1, 'committed'],
        [2, 'lost_lease'],
      ],
    );
    assert.deepEqual(asked, [
      [
        'bridge_finish',
        {
          p_msg_ids: [1, 2],
          p_read_cts: [4, 5],
          p_verdicts: ['committed', 'retry'],
          p_reasons: [null, 'why'],
          p_delays_ms: [0, 500],
        },
      ],
    ]);
  });
});

describe('the ledger', () => {
  const payloads = [payload(1), payload(2), payload(3)] as Payload[];

  it('finalizes a batch, and gives the outcomes in the order of the payloads', async () => {
    const { asked, ledger } = calling([
      { ordinal: 3, outcome: 'conflict' },
      { ordinal: 1, outcome: 'committed' },
      { ordinal: 2, outcome: 'already' },
    ]);
    assert.deepEqual(await ledger.finalizeBatch(payloads), ['committed', 'already', 'conflict']);
    assert.deepEqual(asked, [['finalize_batch', { p_payloads: payloads }]]);
    const ended = calling([{ ordinal: 1, outcome: 'voided' }]).ledger;
    assert.deepEqual(await ended.finalizeBatch(payloads.slice(0, 1)), ['voided']);
  });

  it('has finalized nothing, as far as we know, where an answer is missing, twice there or unheard of', async () => {
    const rows = [
      { ordinal: 1, outcome: 'committed' },
      { ordinal: 2, outcome: 'committed' },
      { ordinal: 3, outcome: 'committed' },
    ];
    for (const [given, message] of [
      [rows.slice(0, 2), '3 payloads gave 2 rows, undefined among them'],
      [[...rows, { ordinal: 3, outcome: 'already' }], '3 payloads gave 4 rows, undefined among them'],
      [[...rows, { ordinal: 4, outcome: 'committed' }], '3 payloads gave 4 rows, undefined among them'],
      [[...rows.slice(0, 2), { ordinal: 3, outcome: 'maybe' }], '3 payloads gave 3 rows, maybe among them'],
    ] as const)
      await assert.rejects(calling([...given]).ledger.finalizeBatch(payloads), { message });
  });

  it('tells which payloads have their ticket, and which another’s', async () => {
    const { asked, ledger } = calling([
      { ordinal: 3, outcome: 'conflict' },
      { ordinal: 1, outcome: 'already' },
    ]);
    assert.deepEqual(await ledger.ticketsOf(payloads), ['already', undefined, 'conflict']);
    assert.deepEqual(asked, [['tickets_of', { p_payloads: payloads }]]);
  });

  it('calls any other function with the payload', async () => {
    const { asked, ledger } = calling([]);
    assert.equal(await ledger.call('book', payloads[0] as Payload), undefined);
    assert.deepEqual(asked, [['book', { p_payload: payloads[0] }]]);
  });
});
