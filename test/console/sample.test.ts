import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  HISTORY_COLUMNS,
  historyRow,
  type IntakeLook,
  type LedgerLook,
  type OpenIssues,
  SampleMaker,
} from '#core/console/sample.ts';

const intake = (enqueued: number, queue_depth: number): { look: IntakeLook; ms: number } => ({
  look: {
    enqueued,
    queue_depth,
    oldest_msg_sec: null,
    dlq_depth: 0,
    inbox: { accepted: 0, waiting: 0, oldest_sec: null, dead_letters: 0, doors_age_sec: 1 },
    orders: { held: 0, paying: 0, past_bound: 0, past_bound_sec: null, to_close: 0 },
    pools: [],
    bridge_workers: 4,
  },
  ms: 1.4,
});
const NO_ORDERS: LedgerLook['orders'] = {
  outbox: {
    settle: { due: 0, oldest_sec: 0, dead_letters: 0 },
    void: { due: 0, oldest_sec: 0, dead_letters: 0 },
  },
  refunds: { due: 0, review: 0, failed: 0 },
  refunds_oldest_sec: 0,
  braked: 0,
  decisions: { funds: 0, refund: 0, void: 0, ignored: 0 },
};
const ledger = (tickets: number, recorded = 0): { look: LedgerLook; ms: number } => ({
  look: {
    tickets,
    webhooks: {
      backlog: 3,
      oldest_sec: 2,
      dead_letters: 1,
      payments_without_user: 0,
      silent_disputes: 0,
      recorded,
    },
    calls: 0,
    orders: NO_ORDERS,
    webhook_workers: 2,
  },
  ms: 2,
});
const DOWN = { ms: 900 };
const issues = (open: number, ...newest: [id: string, seen_ms: number][]): OpenIssues => ({
  open,
  newest: newest.map(([id, seen_ms]) => ({ id, seen_ms, kind: 'claim', lane: null, type: 't', failures: 1 })),
});

describe('a sample', () => {
  it('has no pace before there are two looks, and one afterwards', () => {
    const maker = new SampleMaker();
    const first = maker.make(0, intake(100, 10), ledger(90, 5));
    assert.deepEqual([first.claims_total, first.claims_per_sec, first.drain_per_sec], [100, null, null]);
    const second = maker.make(2_000, intake(300, 50), ledger(250, 9));
    assert.deepEqual(
      [second.claims_per_sec, second.drain_per_sec, second.commits_per_sec, second.webhooks.per_sec],
      [100, 80, 80, 2],
    );
  });

  it('estimates when the queue is empty from how it fell, and says nothing while it grows', () => {
    const maker = new SampleMaker();
    assert.equal(maker.make(0, intake(100, 100), DOWN).eta_sec, null);
    assert.equal(maker.make(1_000, intake(200, 150), DOWN).eta_sec, null);
    assert.equal(maker.make(2_000, intake(200, 50), DOWN).eta_sec, 2);
    assert.equal(maker.make(3_000, intake(200, 0), DOWN).eta_sec, 0);
  });

  it('shows a database that is down as not known, and picks up the pace when it is back', () => {
    const maker = new SampleMaker();
    maker.make(0, intake(0, 0), ledger(0));
    const outage = maker.make(1_000, DOWN, DOWN);
    assert.deepEqual(
      [outage.db1, outage.db2],
      [
        { ok: false, ms: 900 },
        { ok: false, ms: 900 },
      ],
    );
    const { at: _, db1: _1, db2: _2, webhooks, inbox, workers, orders, ...values } = outage;
    assert.deepEqual([...new Set([values, webhooks, inbox, workers, orders].flatMap(Object.values))], [null]);
    const back = maker.make(2_000, intake(20, 0), ledger(10));
    assert.deepEqual([back.claims_per_sec, back.commits_per_sec, back.db1.ok], [10, 5, true]);
  });

  it('does not compare with what was seen long ago, nor with a counter that was reset', () => {
    const maker = new SampleMaker();
    maker.make(0, intake(500, 0), ledger(500, 500));
    const late = maker.make(60_000, intake(600, 0), ledger(600, 600));
    assert.deepEqual([late.claims_per_sec, late.commits_per_sec], [null, null]);
    assert.equal(maker.make(61_000, intake(0, 0), ledger(0, 0)).claims_per_sec, 0);
  });

  it('has what goes on once, the oldest first, and each open issue of both databases once', () => {
    const breaker = { kind: 'breaker', subject: 'hooks.example', why: 'certificate has expired' } as const;
    const secret = { kind: 'secret', subject: 'endpoint shop', why: null, began_ms: 500 } as const;
    const one = intake(0, 0);
    const two = ledger(0);
    const sample = new SampleMaker().make(
      0,
      {
        ...one,
        look: { ...one.look, troubles: [{ ...breaker, began_ms: 2_000 }], issues: issues(1, ['a', 10]) },
      },
      {
        ...two,
        look: {
          ...two.look,
          troubles: [secret, { ...breaker, began_ms: 1_000 }],
          issues: issues(7, ['b', 20], ['a', 5], ['c', 4], ['d', 3], ['e', 2], ['f', 1]),
        },
      },
    );
    assert.deepEqual(
      sample.troubles?.map(({ subject, since }) => [subject, since]),
      [
        ['endpoint shop', '1970-01-01T00:00:00.500Z'],
        ['hooks.example', '1970-01-01T00:00:01.000Z'],
      ],
    );
    assert.deepEqual(
      [sample.issues?.open, sample.issues?.newest.map(({ id }) => id)],
      [7, ['b', 'a', 'c', 'd', 'e']],
    );
    assert.deepEqual(new SampleMaker().make(0, intake(0, 0), DOWN).troubles, []);
  });

  it('is a short row in the history, with a value for each column', () => {
    const row = historyRow(new SampleMaker().make(0, intake(100, 10), ledger(90, 5)));
    assert.equal(row.length, HISTORY_COLUMNS.length);
    const flat = Object.fromEntries(HISTORY_COLUMNS.map((column, index) => [column, row[index]]));
    assert.deepEqual(
      [flat.at, flat.queue_depth, flat.webhooks_backlog, flat.db2_ok],
      ['1970-01-01T00:00:00.000Z', 10, 3, true],
    );
    assert(!row.includes(undefined as never));
  });
});
