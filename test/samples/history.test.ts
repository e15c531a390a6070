import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mergeMarks, type RawMark } from '#core/console/marks.ts';
import {
  type Asked,
  historyOf,
  type NumbersRow,
  type PartRow,
  partIn,
  rangeMs,
  type SampleHistory,
  windowOf,
} from '#core/console/samples.ts';

const START_MS = Date.parse('2026-03-01T10:00:00Z');
const ms = (sec: number): number => START_MS + sec * 1_000;
const INTAKE = { enqueued: 0, drained: 0, queue_depth: 0, dlq_depth: 0, bridge_workers: 1 };
const LEDGER = { tickets: 0, recorded: 0, calls: 0, backlog: 0, dead_letters: 0 };

const intake = (sec: number, more: Record<string, number | null>): NumbersRow => ({
  ...INTAKE,
  ...more,
  at: ms(sec),
});
const ledger = (sec: number, more: Record<string, number | null> = {}): NumbersRow => ({
  ...LEDGER,
  ...more,
  at: ms(sec),
});
const asked = (
  name: string,
  side: 'db1' | 'db2',
  rows: readonly NumbersRow[],
  marks: readonly RawMark[] = [],
  part: readonly PartRow[] | null = null,
  parts: readonly string[] = [],
): Asked => ({ name, side, answer: { rows, marks, parts, part } });
const outage = (subject: string, from: number, to: number | null): RawMark => ({
  kind: 'outage',
  subject,
  began_ms: ms(from),
  ended_ms: to === null ? null : ms(to),
});
const column = ({ columns, rows }: Pick<SampleHistory, 'columns' | 'rows'>, name: string) =>
  rows.map((row) => row[columns.indexOf(name)]);
/** An hour later: nothing in it is still going on. */
const window = (from: number, to: number, stepSec = 2) => ({
  fromMs: ms(from),
  toMs: ms(to),
  nowMs: ms(3_600),
  stepSec,
});

describe('a range', () => {
  it('is a number of minutes, hours or days, up to thirty days', () => {
    assert.deepEqual(
      ['15m', '1h', '24h', '7d', '30d'].map(rangeMs),
      [900_000, 3_600_000, 86_400_000, 604_800_000, 2_592_000_000],
    );
    for (const wrong of ['', '0m', '31d', '721h', '1w', '1.5h', '-1h', '1h '])
      assert.equal(rangeMs(wrong), undefined);
  });

  it('has at most 500 steps, of seconds only in the last hour', () => {
    const stepOf = (spanSec: number, agoSec = spanSec) =>
      windowOf(ms(-agoSec), ms(spanSec - agoSec), START_MS).stepSec;
    assert.deepEqual(
      [900, 3_600, 86_400, 604_800, 2_592_000].map((sec) => stepOf(sec)),
      [2, 10, 300, 1_800, 7_200],
    );
    assert.equal(stepOf(900, 7_200), 60, 'a quarter of an hour two hours ago is known by the minute');
  });
});

describe('what is remembered', () => {
  it('has rates from counters, none before the first row, and never one below zero', () => {
    const rows = [intake(0, { enqueued: 100 }), intake(2, { enqueued: 120 }), intake(4, { enqueued: 0 })];
    const history = historyOf([asked('DB1', 'db1', rows)], window(0, 6));
    assert.deepEqual(column(history, 'claims_per_sec'), [null, 10, 0]);
    assert.deepEqual(column(history, 'claims_total'), [100, 120, 0]);
  });

  it('takes the rate of its first row from the row before, which it does not show', () => {
    const rows = [intake(-2, { enqueued: 80 }), intake(0, { enqueued: 100 })];
    assert.deepEqual(column(historyOf([asked('DB1', 'db1', rows)], window(0, 6)), 'claims_per_sec'), [10]);
  });

  it('draws no rate across a time in which nothing was sampled', () => {
    const rows = [
      intake(0, { enqueued: 100 }),
      intake(600, { enqueued: 900 }),
      intake(602, { enqueued: 902 }),
    ];
    const history = historyOf([asked('DB1', 'db1', rows)], window(0, 700));
    assert.deepEqual(column(history, 'claims_per_sec'), [null, null, 1]);
  });

  it('knows nothing of a database while it was away, and that it was away, from the other one', () => {
    const db1 = [0, 2, 4, 6, 8, 10].map((sec) => intake(sec, { queue_depth: sec }));
    const db2 = [ledger(0, { tickets: 5 }), ledger(10, { tickets: 9 })];
    const answers = [asked('DB1', 'db1', db1, [outage('DB2', 2, 10)]), asked('DB2', 'db2', db2)];
    const history = historyOf(answers, window(0, 12));
    assert.deepEqual(column(history, 'db2_ok'), [true, false, false, false, false, true]);
    assert.deepEqual(column(history, 'db1_ok'), [true, true, true, true, true, true]);
    assert.deepEqual(column(history, 'ledger_total'), [5, null, null, null, null, 9]);
    assert.deepEqual(column(history, 'queue_depth'), [0, 2, 4, 6, 8, 10]);
    const without = historyOf([asked('DB1', 'db1', db1), asked('DB2', 'db2', db2)], window(0, 12));
    assert.deepEqual(
      column(without, 'db2_ok').includes(false),
      false,
      'a row that is missing is not an outage',
    );
  });

  it('shows what one database remembers while the other does not answer', () => {
    const answers: Asked[] = [
      asked('DB1', 'db1', [intake(0, { queue_depth: 3 })], [outage('DB2', 0, null)]),
      { name: 'DB2', side: 'db2' },
    ];
    const history = historyOf(answers, window(0, 6));
    assert.deepEqual(history.databases, [
      { name: 'DB1', ok: true },
      { name: 'DB2', ok: false },
    ]);
    assert.deepEqual(column(history, 'queue_depth'), [3]);
    assert.deepEqual(
      history.marks.map(({ subject, ended_at }) => [subject, ended_at]),
      [['DB2', null]],
    );
  });

  it('does not show a step that has not ended, which would look like a fall', () => {
    const rows = [intake(0, { enqueued: 0 }), intake(60, { enqueued: 600 }), intake(120, { enqueued: 610 })];
    const open = { fromMs: ms(0), toMs: ms(130), nowMs: ms(130), stepSec: 60 };
    assert.deepEqual(column(historyOf([asked('DB1', 'db1', rows)], open), 'claims_per_sec'), [null, 10]);
  });

  it('adds up cells, counts one that is silent as it was last, and shows one alone', () => {
    const west = [
      intake(0, { queue_depth: 1, oldest_msg_sec: 5 }),
      intake(2, { queue_depth: 2, oldest_msg_sec: 7 }),
    ];
    const east = [intake(0, { queue_depth: 10, oldest_msg_sec: null })];
    const answers = [asked('cell west', 'db1', west), asked('cell east', 'db1', east)];
    const both = historyOf(answers, window(0, 6));
    assert.deepEqual(column(both, 'queue_depth'), [11, 12]);
    assert.deepEqual(column(both, 'oldest_msg_sec'), [5, 7]);
    assert.deepEqual(both.parts, ['cell west', 'cell east']);
    const alone = historyOf(answers, window(0, 6), 'cell west');
    assert.deepEqual([column(alone, 'queue_depth'), alone.part], [[1, 2], null]);
  });

  it('goes on while one cell is away, as the live numbers do, and knows nothing while all are', () => {
    const row = (sec: number): NumbersRow => intake(sec, { queue_depth: sec });
    const west = asked('cell west', 'db1', [0, 2, 4, 6].map(row), [outage('cell east', 2, 6)]);
    const east = asked('cell east', 'db1', [0, 6].map(row), [outage('cell west', 4, 6)]);
    const both = historyOf([west, east], window(0, 8));
    assert.deepEqual(column(both, 'db1_ok'), [true, true, false, true]);
    assert.deepEqual(column(both, 'queue_depth'), [0, 2, null, 12]);
    const alone = historyOf([west, east], window(0, 8), 'cell east');
    assert.deepEqual(column(alone, 'db1_ok'), [true, true]);
  });

  it('has the rates of each cell by itself: one that is new, or comes late, makes no rate of another', () => {
    const west = [0, 2, 4, 6, 8].map((sec) => intake(sec, { enqueued: 1_000 + 10 * sec }));
    const east = [4, 6].map((sec) => intake(sec, { enqueued: 1_000_000 + 5 * sec }));
    const answers = [asked('cell west', 'db1', west), asked('cell east', 'db1', east)];
    const history = historyOf(answers, window(0, 14));
    // East has no sample at 8: one step without a row is as the one before.
    assert.deepEqual(column(history, 'claims_per_sec'), [null, 10, 10, 15, 15]);
    assert.deepEqual(column(history, 'claims_total'), [1_000, 1_020, 1_001_060, 1_001_090, 1_001_110]);
    const silent = historyOf(
      [
        asked('cell west', 'db1', [...west, intake(10, { enqueued: 1_100 })]),
        asked('cell east', 'db1', east),
      ],
      window(0, 14),
    );
    assert.deepEqual(column(silent, 'claims_per_sec').slice(4), [15, 10], 'and no longer');
  });

  it('has the numbers of a pool from the cell that has it, whatever the others lack', () => {
    const rows = [0, 2, 4, 6].map((sec) => intake(sec, {}));
    const none = (...secs: number[]) => secs.map((sec): PartRow => [ms(sec), null]);
    const west = asked(
      'cell west',
      'db1',
      rows,
      [],
      [[ms(0), [10, 0, 0]], [ms(2), [8, 2, 0]], ...none(4, 6)],
    );
    const east = asked('cell east', 'db1', rows, [], [...none(0, 2), [ms(4), [8, 2, 0]], ...none(6)]);
    for (const answers of [
      [west, east],
      [east, west],
    ]) {
      const { part } = historyOf(answers, window(0, 8), 'pool gig');
      assert(part !== null);
      assert.deepEqual(column(part, 'available'), [10, 8, 8, null]);
      assert.deepEqual(column(part, 'claims_per_sec'), [null, 1, 0, null]);
    }
  });

  it('names a lane by its cell where there are several: each numbers its own', () => {
    const rows = [intake(0, {})];
    const of = 'cell east lane 1';
    const cells = ['cell west', 'cell east'].map((name) =>
      asked(name, 'db1', rows, [], [], ['lane 1', 'pool gig']),
    );
    assert.deepEqual(historyOf(cells, window(0, 2)).parts, [
      ...['cell west', 'cell east', 'cell east lane 1', 'cell west lane 1', 'pool gig'],
    ]);
    assert.deepEqual(
      ['cell west', 'cell east', 'DB2'].map((name) => partIn(name, of)),
      [null, 'lane 1', null],
    );
    assert.deepEqual([partIn('cell west', 'lane 1'), partIn('DB1', 'lane 1')], [null, 'lane 1']);
    assert.equal(partIn('cell west', 'pool gig'), 'pool gig');
    const east = asked('cell east', 'db1', rows, [], [[ms(0), [3, 0.5]]]);
    const { part } = historyOf([asked('cell west', 'db1', rows), east], window(0, 2), of);
    assert.deepEqual(part && column(part, 'messages'), [3]);
  });

  it('carries the numbers of a part on until they change, with how fast a pool is claimed', () => {
    const rows = [0, 60, 120].map((sec) => intake(sec, {}));
    const db1 = asked(
      'DB1',
      'db1',
      rows,
      [],
      [
        [ms(-60), [10, 0, 0]],
        [ms(60), [4, 6, 0]],
      ],
      ['pool gig', 'lane 1'],
    );
    const db2 = asked(
      'DB2',
      'db2',
      [],
      [],
      [
        [ms(60), [0.2, 0.9, 3]],
        [ms(120), null],
      ],
      ['pool gig'],
    );
    const { part, parts } = historyOf([db1, db2], window(0, 180, 60), 'pool gig');
    assert(part !== null);
    assert.deepEqual(parts, ['lane 1', 'pool gig']);
    assert.deepEqual(column(part, 'available'), [10, 4, 4]);
    assert.deepEqual(column(part, 'claims_per_sec'), [null, 0.1, 0]);
    assert.deepEqual(column(part, 'ticket_p99_sec'), [null, 0.9, null]);
  });
});

describe('marks of several databases', () => {
  it('are one where they tell of one thing, from its beginning to its end', () => {
    const marks = mergeMarks([
      { source: 'cell west', marks: [outage('DB2', 10, 70)] },
      { source: 'cell east', marks: [outage('DB2', 12, null), outage('DB2', 500, 520)] },
    ]);
    assert.deepEqual(
      marks.map(({ began_at, ended_at }) => [began_at, ended_at]),
      [
        ['2026-03-01T10:08:20.000Z', '2026-03-01T10:08:40.000Z'],
        ['2026-03-01T10:00:10.000Z', '2026-03-01T10:01:10.000Z'],
      ],
    );
  });

  it('are several where each database tells of itself', () => {
    const restart: RawMark = { kind: 'restart', subject: 'database', began_ms: ms(0), ended_ms: ms(0) };
    const marks = mergeMarks([
      { source: 'DB1', marks: [restart] },
      { source: 'DB2', marks: [restart] },
    ]);
    assert.deepEqual(marks.map(({ source }) => source).sort(), ['DB1', 'DB2']);
  });
});
