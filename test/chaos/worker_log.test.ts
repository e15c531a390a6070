import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Delivery } from '#core/bridge/delivery.ts';
import { NO_METRICS } from '#core/ports.ts';
import { tellOutcome } from '#core/webhook/outcome.ts';
import { readWorkerLog } from '../../chaos/worker_log.ts';
import { createLog } from '../../src/log.ts';

const SLOT_ID = '0b9e2a52-6d0c-4d0f-8d53-0d4c2c9c1a11';
const CLAIM_ID = '7f3f7c59-2f0a-4b7e-9d3a-3c1f0f6b2a22';

/** What the product itself writes: a line that is spelled differently tomorrow must fail here and not go unread. */
function logOf(write: (log: ReturnType<typeof createLog>) => void): string {
  const lines: string[] = [];
  write(createLog('debug', (line) => lines.push(line)));
  return lines.join('');
}

const delivery = (message: unknown) =>
  new Delivery({ msg_id: 7, read_ct: 2, attempts: 2, message, claim_state: null } as ConstructorParameters<
    typeof Delivery
  >[0]);
const carried = { pool_id: 'rpc', resource_id: SLOT_ID, user_id: 'ann', claim_id: CLAIM_ID };

describe("a worker's log", () => {
  test('tells how each delivery ended', () => {
    const text = logOf((log) => delivery(carried).report(log, 'committed'));
    const { finishes, lostLeases } = readWorkerLog('w1', text, Date.now());
    const [finish] = finishes;
    assert.deepEqual(
      { ...finish, at: 0 },
      { worker: 'w1', msgId: '7', claimId: CLAIM_ID, readCt: 2, outcome: 'committed', at: 0 },
    );
    assert.deepEqual(lostLeases, []);
  });

  test('tells which lease was lost, by its claim, or by its message where there is none', () => {
    const text = logOf((log) => {
      delivery(carried).report(log, 'lost_lease');
      delivery('no object').report(log, 'lost_lease');
    });
    const { lostLeases, finishes } = readWorkerLog('w1', text, Date.now());
    assert.deepEqual(
      lostLeases.map(({ kind, ids }) => [kind, ...ids]),
      [
        ['bridge', CLAIM_ID],
        ['bridge', '7'],
      ],
    );
    assert.equal(finishes.length, 2);
  });

  test('tells under which lease each event was tried, and which was lost to another worker', () => {
    const outcome = {
      ...{ webhookId: 'w', provider: 'stripe', eventId: 'evt_1', eventType: 't', error: null, durationMs: 1 },
      ...{ attempts: 2, takeovers: 1 },
    };
    const text = logOf((log) => {
      tellOutcome({ ...outcome, result: 'lost_lease' }, log, NO_METRICS);
      tellOutcome({ ...outcome, eventId: 'evt_2', result: 'success' }, log, NO_METRICS);
    });
    const { lostLeases, eventFinishes } = readWorkerLog('w1', text, Date.now());
    assert.deepEqual(
      lostLeases.map(({ kind, ids }) => [kind, ...ids]),
      [['webhook', 'evt_1']],
    );
    const finish = { worker: 'w1', attempts: 2, takeovers: 1, at: 0 };
    assert.deepEqual(
      eventFinishes.map((one) => ({ ...one, at: 0 })),
      [
        { ...finish, eventId: 'evt_1', result: 'lost_lease' },
        { ...finish, eventId: 'evt_2', result: 'success' },
      ],
    );
  });

  test('that was cut short by a kill, or has other lines in it, is read as far as it goes', () => {
    const whole = logOf((log) => delivery(carried).report(log, 'committed'));
    const text = `not a line of ours\n${whole}{"at":"2026-01-01","message":"deliv`;
    assert.equal(readWorkerLog('w1', text, 0).finishes.length, 1);
  });
});
