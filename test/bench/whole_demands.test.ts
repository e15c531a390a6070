import assert from 'node:assert/strict';
import { test } from 'node:test';
import { together } from '../../bench/whole/cpu_turns.ts';
import { type Held, heldRow, type Minute } from '../../bench/whole/held.ts';
import { hasRoom, judge, type Load, type Measured } from '../../bench/whole/measure.ts';
import { demandsOf, rowOf, tableOf, type WholeRow } from '../../bench/whole/rows.ts';
import { halfOf } from '../../bench/whole.ts';

const LOAD: Load = { clients: 64, slots: 1, refill: false, windows: 3, windowSec: 60, followedPerSec: 1 };

const measured = (rate: number): Measured => ({
  ...{ claims: rate * 100, refused: 0, seconds: 90, drainedSeconds: 100, tickets: rate * 100 },
  ...{ claimP50Ms: 1, claimP99Ms: 2, ticketP50Ms: 3, ticketP99Ms: 500, loadUs: 10 * rate * 100, walBytes: 1 },
  partsUs: { server: 30 * rate * 100, worker: 10 * rate * 100 },
  bloat: { bytes: 2 ** 20, deadRows: 0 },
  windows: [
    { claims: 10, refused: 0, seconds: 1, cpuUs: 100 },
    { claims: 10, refused: 0, seconds: 1, cpuUs: 220 },
  ],
});
const row = (way: string, rate: number, name = 'large'): WholeRow =>
  rowOf({ ...LOAD, name }, way, measured(rate));

/** By the words that only one demand has. */
const WORDS = {
  plain: /the plain design/,
  redis: /the Redis design/,
  claimsOnly: /worker stands still/,
  cpu: /CPU of a claim the whole way/,
  growth: /CPU of a claim in the first minute/,
  half: /half load/,
} as const;
const demandIn = (rows: readonly WholeRow[], words: RegExp) => {
  const found = demandsOf(rows).filter(({ what }) => words.test(what));
  assert.equal(found.length, 1, String(words));
  return found[0];
};

test('a rate counts until the last ticket, not until the last claim, and a part has its CPU for a claim', () => {
  const { rate, cpu_us, parts, per_core, load_cpu_us } = row('sluice', 50);
  assert.deepEqual([rate, cpu_us, parts, per_core, load_cpu_us], [50, 40, 'server 30 worker 10', 25_000, 10]);
});

test('each design is judged at the row where it does best against ours', () => {
  const rows = [row('sluice', 60), row('plain', 5), row('redis', 60), row('claims-only', 80)];
  rows.push(row('sluice', 60, 'small'), row('plain', 30, 'small'), row('redis', 120, 'small'));
  rows.push(row('claims-only', 240, 'small'));
  assert.deepEqual(
    [WORDS.plain, WORDS.redis, WORDS.claimsOnly].map((words) => {
      const { atLeast, value } = demandIn(rows, words) ?? {};
      return [atLeast, value];
    }),
    [
      [6, 2],
      [1, 0.5],
      [0.65, 0.25],
    ],
  );
});

test('rows that are no common load do not count as one: half, turns and the held snapshot', () => {
  const rows = [row('sluice', 60), row('plain', 10), row('sluice', 1, 'half'), row('sluice', 1, 'held')];
  rows.push(row('plain', 1, 'held'), row('sluice', 1, 'cpu'));
  assert.equal(demandIn(rows, WORDS.plain)?.value, 6);
});

test('the last minute may cost a tenth more than the first, of the first load; half load has its own bound', () => {
  const rows = [row('sluice', 60), row('sluice', 30, 'half')];
  assert.equal(demandIn(rows, WORDS.growth)?.value, 0.5, '220 µs against 100');
  assert.equal(demandIn(rows, WORDS.half)?.value, 0.5, '500 ms against 250');
});

test('CPU is met at 0.65 of the other checkout, by the median of the turns that its row has', () => {
  const rows = (cpu_ratio: number) => [row('sluice', 60, 'cpu'), { ...row('old', 60, 'cpu'), cpu_ratio }];
  assert.match(demandIn(rows(2), WORDS.cpu)?.what ?? '', /of old \/ ours/);
  assert.equal(demandIn(rows(2), WORDS.cpu)?.value, 1.3);
  assert.equal(demandIn(rows(1), WORDS.cpu)?.value, 0.65, 'no better than the other: missed');
});

test('nothing is judged of rows that were not measured', () => {
  assert.deepEqual(
    demandsOf([]).map(({ value }) => value),
    Array(10).fill(undefined),
  );
});

const minute = (more: Partial<Minute>): Minute => ({
  ...{ claims: 120_000, refused: 0, broken: 0, seconds: 60, p50Ms: 2, p99Ms: 10, cpuUs: 1 },
  ...{ ticketP50Ms: 20, ticketP99Ms: 100, takeBuffers: 400, claimBuffers: 20 },
  ...more,
});
const PLAN = { minutes: 3, windowSec: 60, perSec: 2_000, connections: 64, warmUpSec: 1, followedPerSec: 1 };
const held = (last: Partial<Minute>, middle: Partial<Minute> = {}): WholeRow => {
  const given: Held = {
    minutes: [minute({}), minute({ p99Ms: 9_999, takeBuffers: 9_999, ...middle }), minute(last)],
    ...{ partsUs: { server: 36e6 }, loadUs: 0 },
  };
  return heldRow('sluice', PLAN, given);
};
const heldValues = (last: Partial<Minute>, middle?: Partial<Minute>) =>
  demandsOf([held(last, middle)])
    .filter(({ what }) => /held snapshot/.test(what))
    .map(({ value }) => value);

test('under a held snapshot the last minute may be half as much again as the first, whatever was between', () => {
  assert.deepEqual(heldValues({}), [1.5, 1.5, 1.5, 1.5]);
  assert.deepEqual(
    heldValues({ p99Ms: 15, ticketP99Ms: 150, takeBuffers: 600, claimBuffers: 30 }),
    [1, 1, 1, 1],
  );
  assert.deepEqual(heldValues({ p99Ms: 30 }), [0.5, 1.5, 1.5, 1.5]);
  assert.deepEqual(heldValues({ ticketP99Ms: 300 }), [1.5, 0.5, 1.5, 1.5]);
  assert.deepEqual(heldValues({ takeBuffers: 1_200 }), [1.5, 1.5, 0.5, 1.5]);
  assert.deepEqual(heldValues({ claimBuffers: 60 }), [1.5, 1.5, 1.5, 0.5]);
});

test('a claim that failed in any minute fails all that is held against the first', () => {
  assert.deepEqual(heldValues({}, { broken: 1 }), [0, 0, 0, 0]);
  assert.deepEqual(heldValues({}, { refused: 1 }), [0, 0, 0, 0]);
});

test('the row of a held snapshot has the rate and CPU of all its minutes', () => {
  const { rate, claims, cpu_us, minutes, first_minute_rate } = held({ claims: 60_000 });
  assert.deepEqual([rate, claims, minutes, first_minute_rate], [300_000 / 180, 300_000, 3, 2_000]);
  assert.equal(cpu_us, 120);
});

test('the turns of one version are one run: its CPU is that of the turns, its first and last minute the first and last turn', () => {
  const turns = [100, 300].map((us) => ({ ops: 1, partsUs: { server: us, db1: 2 * us } }));
  const all = together([measured(1), { ...measured(3), ticketP99Ms: 900 }], turns);
  assert.deepEqual([all.claims, all.drainedSeconds, all.ticketP99Ms, all.windows.length], [400, 200, 900, 4]);
  assert.deepEqual(all.partsUs, { server: 400, db1: 800 });
});

test('a pool that could sell out in the next window gets no next window', () => {
  const window = { claims: 100, refused: 0, seconds: 1, cpuUs: 1 };
  assert.equal(hasRoom({ ...LOAD, slots: 300 }, [window]), true);
  assert.equal(hasRoom({ ...LOAD, slots: 300 }, [window, window]), false);
  assert.equal(hasRoom({ ...LOAD, slots: 300, refill: true }, [window, window]), true);
});

test('a run is refused where a ticket is missing, the pool sold out, or a followed claim came to nothing', () => {
  const followed = { claimMs: [], ticketMs: [], refused: 0, failed: [], lateMs: [] };
  const counts = { claims: 10, refused: 0, tickets: 10 };
  assert.doesNotThrow(
    () => judge(LOAD, { ...counts, tickets: 12 }, followed),
    'wrk left in the middle of two',
  );
  assert.throws(() => judge(LOAD, { ...counts, tickets: 9 }, followed), /the ledger has 9 tickets/);
  assert.throws(() => judge(LOAD, { ...counts, refused: 1 }, followed), /the pool is too small/);
  assert.doesNotThrow(() => judge({ ...LOAD, refill: true }, { ...counts, refused: 1 }, followed));
  assert.throws(() => judge(LOAD, counts, { ...followed, failed: ['x'] }), /1 followed claims failed: x/);
  assert.throws(() => judge(LOAD, counts, { ...followed, lateMs: [1] }), /1 followed claims have no ticket/);
});

test('half load is half of what was possible', () => assert.equal(halfOf(6_400), 3_200));

test('the table leaves out what a row does not have', () => {
  const { ticket_p99_ms: _, ...late } = held({});
  const table = tableOf([row('sluice', 60), late], { sluice: ['as it is'] });
  assert.doesNotMatch(table, /undefined|NaN/);
  assert.match(table, /^ {2}sluice: as it is$/m);
});
