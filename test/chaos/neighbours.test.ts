import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Measure, type NeighbourRow, neighbourRows } from '../../chaos/checkers/neighbours.ts';
import type { History } from '../../chaos/history.ts';
import { judge } from '../../chaos/judge.ts';
import { NEIGHBOURS } from '../../chaos/options.ts';
import { summaryOf } from '../../chaos/show.ts';
import { addNeighbour, FROM, healthyCalls, QUIET_AT, REQUESTS, TO } from './bad_neighbours.ts';
import { goodHistory } from './good_history.ts';

const rowOf = (history: History, measure: Measure): NeighbourRow => {
  const row = neighbourRows(history).find((one) => one.measure === measure);
  assert.ok(row, `no row of ${measure}`);
  return row;
};
const fault = (name: string, startedAt: number, healedAt: number, recoveredAt: number | null = healedAt) => ({
  ...{ name, target: 'x', startedAt, healedAt, recoveredAt },
});

describe('a healthy one beside a neighbour', () => {
  test('is compared with its quiet p99, and 250 ms are always allowed', () => {
    const history = goodHistory();
    addNeighbour(history, ({ at }) => ({ carriedAt: at + 250 }));
    assert.deepEqual(rowOf(history, 'ticket'), {
      ...{ neighbour: 'neighbour-slow-hook', measure: 'ticket', requests: REQUESTS, failures: 0 },
      ...{ failedWith: null, p99: 250, quietP99: 40, limit: 250, verdict: 'kept', why: null },
    });
    assert.deepEqual(judge(history).violations, []);
  });

  test('may take three times what it takes when all is quiet', () => {
    const history = goodHistory();
    addNeighbour(history, ({ at }) => ({ carriedAt: at + 899 }));
    for (const call of history.healthy) if (call.at < FROM) call.carriedAt = call.at + 300;
    assert.deepEqual([rowOf(history, 'ticket').limit, rowOf(history, 'ticket').verdict], [900, 'kept']);
    for (const call of history.healthy) if (call.at >= FROM) call.carriedAt = call.at + 901;
    assert.equal(rowOf(history, 'ticket').verdict, 'broken');
  });

  test('is not judged by its p99 with too few requests, quiet or beside, and a failure counts all the same', () => {
    const few = goodHistory();
    addNeighbour(few, ({ at }) => ({ carriedAt: at + 5_000 }));
    few.healthy = [...healthyCalls(QUIET_AT, few.stormAt), ...healthyCalls(FROM, TO - 5_000, undefined, 99)];
    assert.deepEqual(
      [rowOf(few, 'claim').verdict, rowOf(few, 'claim').why],
      ['not judged', '99 requests are fewer than 100'],
    );
    const [first] = few.healthy.filter(({ at }) => at >= FROM);
    if (first) first.answer = 'no answer';
    assert.deepEqual([rowOf(few, 'claim').verdict, rowOf(few, 'claim').failedWith], ['broken', 'no answer']);

    const { quietAt: _, ...loud } = goodHistory();
    addNeighbour(loud, ({ at }) => ({ carriedAt: at + 5_000 }));
    delete (loud as History).quietAt;
    assert.equal(rowOf(loud, 'ticket').why, '0 quiet requests are fewer than 100');
    assert.deepEqual(judge(loud).violations, []);
  });

  test('is not judged while another fault goes on, nor until its traffic was acknowledged again and settled', () => {
    const slow = ({ at }: { at: number }) => ({ answeredAt: at + 3_000, carriedAt: at + 3_000 });
    const history = goodHistory();
    addNeighbour(history, slow);
    assert.equal(judge(history).violations.length, 4);
    // Healed before the neighbour, and without a word of its traffic until 1 s before its end.
    history.faults.push(fault('kill-db1-postmaster', FROM - 9_000, FROM - 8_000, TO - 1_000));
    assert.deepEqual(judge(history).violations, []);
    assert.equal(rowOf(history, 'claim').requests, 0);
    history.faults.pop();
    // In the middle: what was due before it is judged.
    history.faults.push(fault('cut', FROM + 8_000, FROM + 9_000));
    assert.equal(rowOf(history, 'claim').requests, REQUESTS * 0.8);
    assert.equal(judge(history).violations.length, 4);
    history.faults.push(fault('delay', 0, 1, null));
    assert.equal(rowOf(history, 'claim').requests, 0);
  });

  test('may wait for the leases of killed workers, with its tickets and effects and not with its answers', () => {
    const history = goodHistory();
    addNeighbour(history, ({ at }) => ({ carriedAt: at + 4_000 }), 'neighbour-killed-workers');
    assert.deepEqual(judge(history).violations, []);
    assert.match(rowOf(history, 'effect').why ?? '', /lease/);
    assert.equal(rowOf(history, 'event').verdict, 'kept');
    for (const call of history.healthy) if (call.at >= FROM) call.answeredAt = call.at + 300;
    assert.deepEqual(
      judge(history).violations.map(({ promise, what }) => [promise, what.match(/healthy (\w+)/)?.[1]]),
      [
        ['I13', 'claim'],
        ['I13', 'event'],
      ],
    );
  });

  test('has a row for each kind of neighbour, over all its windows', () => {
    const history = goodHistory();
    addNeighbour(history);
    for (const [at, name] of NEIGHBOURS.entries())
      history.faults.push(fault(name, 100_000 + at * 20_000, 110_000 + at * 20_000));
    history.healthy.push(...healthyCalls(100_000, 110_000));
    const rows = neighbourRows(history);
    assert.equal(rows.length, NEIGHBOURS.length * 4);
    assert.equal(rows[0]?.requests, 2 * REQUESTS);
  });
});

describe('the summary of a run', () => {
  const told = (history: History) => summaryOf(history, judge(history));

  test('says of each neighbour what the healthy one met, or that I13 was not judged', () => {
    const history = goodHistory();
    assert.match(told(history), /^I13: not judged, no neighbour happened$/m);
    addNeighbour(history, undefined, 'neighbour-killed-workers');
    assert.match(
      told(history),
      /neighbour-killed-workers claim: 150 requests, 0 failures, p99 10 ms \(quiet 10 ms, at most 250 ms\): kept$/m,
    );
    assert.match(told(history), /killed-workers ticket: .*: not judged \(what a killed worker held waits/);
  });
});
