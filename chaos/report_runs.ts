// The parts of docs/reliability.md that tell of runs under faults, each from the kept summary of all of them.

import { shortCommit } from '../bench/origin.ts';
import { BUSY_MS, type HoldRow, heldLongest } from './checkers/holds.ts';
import type { ControlResult } from './controls/run_control.ts';
import type { Spread } from './counts.ts';
import { emptyCells, OPERATIONS } from './coverage.ts';
import { FAULT_KINDS } from './faults/kinds.ts';
import { PROMISES } from './judge.ts';
import { duration, number, small, table } from './markdown.ts';
import { acknowledgedIn, type ChaosSummary, type RunSummary } from './result.ts';

export const PICTURE = 'pictures/throughput-through-a-fault.svg';

/** I13 is judged only where a neighbour had a window with enough requests in it. */
const hasJudgedNeighbours = ({ neighbours }: ChaosSummary): boolean =>
  neighbours.some(({ verdict }) => verdict !== 'not judged');
/** Runs from before paid orders have none. */
const PAID_PROMISES: ReadonlySet<string> = new Set(['I14', 'I15', 'I16', 'I17', 'I18']);
const hasOrders = ({ holds }: ChaosSummary): boolean => holds.length > 0;
/** The last promise that some of the runs were judged by. */
const lastPromise = (summary: ChaosSummary): string =>
  hasOrders(summary) ? 'I18' : hasJudgedNeighbours(summary) ? 'I13' : 'I12';

/** The first paragraph of the page. */
export function whatHappened(summary: ChaosSummary): string {
  const { runs } = summary;
  const n = sum(runs, acknowledgedIn);
  if (n === 0) return 'No run is kept yet.';
  const faults = (pick: keyof RunSummary['faults']) => number(sum(runs, (run) => run.faults[pick]));
  const violations = sum(
    runs.flatMap((run) => Object.values(run.violations)),
    (count) => count,
  );
  const bound =
    violations === 0
      ? `\n\nNone in n = ${number(n)} means, with 95 % confidence, fewer than 3/n = ${small(3 / n)} per acknowledgement under faults like these. It does not mean none.`
      : '';
  return (
    `${number(runs.length)} ${runs.length === 1 ? 'run' : 'runs'}, ${number(sum(runs, (one) => one.minutes))} minutes of faults: ` +
    `${number(n)} acknowledgements, ${faults('all')} faults (${faults('crashes')} crashes, ${faults('cuts')} cuts), ` +
    `**${number(violations)} violations** of the promises I1 to ${lastPromise(summary)}.${bound}`
  );
}

export function runsOf({ runs }: ChaosSummary): string {
  if (runs.length === 0) return '';
  const four = (pick: 'lost' | 'duplicated' | 'unexpected' | 'recovered') => (run: RunSummary) =>
    run.counts.claims[pick] + run.counts.events[pick] + run.counts.calls[pick];
  const head = [
    'seed',
    'commit',
    'min',
    'claims',
    'events',
    'calls',
    'operator',
    'faults',
    'crashes',
    'cuts',
  ];
  return [
    '## Runs',
    '',
    table(
      [...head, 'lost leases', 'lost', 'duplicated', 'unexpected', 'recovered', 'violations'],
      runs.map((run) => [
        run.seed,
        shortCommit(run.commit),
        run.minutes,
        run.counts.claims.acknowledged,
        run.counts.events.acknowledged,
        run.counts.calls.acknowledged,
        run.counts.operatorActions,
        ...[run.faults.all, run.faults.crashes, run.faults.cuts, run.lostLeases],
        ...(['lost', 'duplicated', 'unexpected', 'recovered'] as const).map((pick) => four(pick)(run)),
        sum(Object.values(run.violations), (count) => count),
      ]),
    ),
    '',
    'Claims, events, calls and operator: acknowledged to a client. Lost: acknowledged and not there in the end. Duplicated:',
    'there more than once. Unexpected: there, and never asked for. Recovered: never acknowledged, and there all the same, which is',
    'allowed. A lost lease is a worker that came too late and was told so.',
    ...runs.flatMap((run) =>
      run.examples.map(({ promise, what }) => `\n- seed ${run.seed}: ${promise} ${what}`),
    ),
  ].join('\n');
}

export function promisesOf(summary: ChaosSummary, controls: readonly ControlResult[]): string {
  return [
    '## Promises',
    '',
    table(
      ['', 'promise', 'violations', 'seen broken by'],
      Object.entries(PROMISES).map(([name, { text }]) => [
        name,
        text,
        violationsOf(name, summary),
        controls
          .filter((control) => (control.violations[name] ?? 0) > 0)
          .map((control) => control.name)
          .join(', ') || 'hand-made histories',
      ]),
    ),
    '',
    'Each is a pure function over the history ([chaos/checkers](../chaos/checkers)); for each there are hand-made histories that',
    'it rejects ([test/chaos](../test/chaos)), some of which no other one does.',
  ].join('\n');
}

function violationsOf(name: string, summary: ChaosSummary): string | number {
  if (summary.runs.length === 0) return '–';
  if (name === 'I13' && !hasJudgedNeighbours(summary)) return 'not judged';
  if (PAID_PROMISES.has(name) && !hasOrders(summary)) return 'not judged';
  return sum(summary.runs, (run) => run.violations[name] ?? 0);
}

export function neighboursOf({ neighbours }: ChaosSummary): string {
  if (neighbours.length === 0) return '';
  return [
    '## Neighbours',
    '',
    'What a healthy pool and a healthy endpoint met while a neighbour was hostile and nothing else was wrong (I13): requests and',
    'failures of all runs, times of the worst run.',
    '',
    table(
      ['neighbour', 'healthy', 'requests', 'failures', 'quiet p99', 'p99', 'at most', 'verdict'],
      neighbours.map((row) => [
        ...[row.neighbour, row.measure, row.requests, row.failures],
        ...[duration(row.quietP99), duration(row.p99), duration(row.limit)],
        row.why === null ? row.verdict : `${row.verdict}: ${row.why}`,
      ]),
    ),
  ].join('\n');
}

export function holdsOf({ holds }: ChaosSummary): string {
  if (holds.length === 0) return '';
  return [
    '## Holds',
    '',
    'How long after the end of its hold an order that was not bought gave its seats back (I15): orders of all runs, times of the worst',
    'run. Excused is the time in which the intake or a worker was down, and six seconds after.',
    '',
    longestHold(holds),
    '',
    table(
      ['orders that', 'count', 'late p50', 'p99', 'max', 'max without what is excused', 'bound', 'past it'],
      holds.map(({ kind, count, late, lateUnexcused, boundMs, beyond }) => [
        ...[kind, count, duration(late?.p50), duration(late?.p99), duration(late?.max)],
        ...[duration(lateUnexcused?.max), duration(boundMs), beyond],
      ]),
    ),
  ].join('\n');
}

/** The figure of I15 over all runs. */
function longestHold(rows: readonly HoldRow[]): string {
  const longest = heldLongest(rows);
  if (longest === undefined) return 'No hold ended without being bought.';
  const { kind, pastMs, boundMs } = longest;
  const orders = sum(rows, ({ count }) => count);
  const [ended, bound] = [duration(pastMs + boundMs), duration(boundMs)];
  if (pastMs <= 0)
    return `**No seat was held longer than its bound**: of ${number(orders)} orders the longest kept its seats ${ended} past its hold (${kind}), and its bound is ${bound}.`;
  return (
    `**${number(sum(rows, ({ beyond }) => beyond))} of ${number(orders)} orders held seats longer than the bound**, the longest ${ended} past its hold ` +
    `(${kind}), ${duration(pastMs)} more than its bound of ${bound}. The judge lets ${duration(BUSY_MS)} pass: all parts share two cores.`
  );
}

export function controlsOf(controls: readonly ControlResult[]): string {
  if (controls.length === 0) return '';
  return [
    '## Negative controls',
    '',
    'The same runs against a Sluice that was broken on purpose. A judge that finds nothing here would find nothing anywhere.',
    '',
    table(
      ['control', 'what is broken', 'seed', 'found after', 'violations', 'for example'],
      controls.map((control) => [
        control.name,
        control.why,
        control.seed ?? '–',
        control.seed === null ? 'not found' : duration(control.elapsedMs),
        Object.entries(control.violations)
          .map(([promise, count]) => `${promise} ${count}`)
          .join(', ') || '0',
        control.example ? `${control.example.promise}: ${control.example.what}` : '–',
      ]),
    ),
  ].join('\n');
}

export function recoveryOf({ runs, faults, picture }: ChaosSummary): string {
  if (runs.length === 0) return '';
  const spread = (value: Spread) => [duration(value?.p50), duration(value?.p99), duration(value?.max)];
  return [
    '## Recovery',
    '',
    table(
      ['seed', 'first ack p50', 'p99', 'max', 'half throughput p50', 'p99', 'max', 'never', 'drained after'],
      runs.map(({ seed, recovery: { toFirstAck, toHalfThroughput, neverRecovered, drainMs } }) => [
        seed,
        ...spread(toFirstAck),
        ...spread(toHalfThroughput),
        neverRecovered,
        drainMs === null ? 'never' : duration(drainMs),
      ]),
    ),
    '',
    'From the heal of a fault to the next acknowledgement of the traffic it touched, and to the first second with half the',
    'throughput from before the storm; other faults may be going on meanwhile. Drained: from the end of the storm to empty queues.',
    ...(picture
      ? [
          '',
          `![Acknowledgements per second around a fault of DB1, claims, events and calls together](${PICTURE})`,
          '',
          'Each band is a fault until it is healed; a database that was killed then still has to recover. Claims need DB1, events and',
          'calls need DB2.',
        ]
      : []),
    '',
    table(
      ['fault', 'times', 'first ack p50 (worst seed)', 'max'],
      Object.entries(faults).map(([name, { times, p50, max }]) => [
        name,
        times,
        duration(p50),
        duration(max),
      ]),
    ),
  ].join('\n');
}

/** Every fault that there is, whether or not it happened, against every operation. */
export function coverageTable({ runs, coverage }: ChaosSummary): string {
  if (runs.length === 0) return '';
  const rows = Object.keys(FAULT_KINDS);
  const empty = coverage === null ? [] : emptyCells(coverage);
  return [
    '## Which operation met which fault',
    '',
    ...(coverage === null
      ? ['The kept runs are from before this was counted.']
      : [
          'How many of each operation were under way while a fault lasted, until the traffic that it touched was acknowledged again, and',
          'for five seconds after. All clients work through all faults ([chaos/coverage.ts](../chaos/coverage.ts)).',
          '',
          table(
            ['fault', ...OPERATIONS.map(({ name }) => name)],
            rows.map((name) => [
              name,
              ...OPERATIONS.map((_, column) => coverage[name]?.[column] || '**none**'),
            ]),
          ),
          '',
          empty.length === 0
            ? 'No cell is empty.'
            : `**${number(empty.length)} cells are empty**: ${grouped(empty)}.`,
        ]),
  ].join('\n');
}

/** "a × x, a × y" as "a × x, y". */
function grouped(cells: readonly string[]): string {
  const byFault = new Map<string, string[]>();
  for (const cell of cells) {
    const [fault = '', operation = ''] = cell.split(' × ');
    byFault.set(fault, [...(byFault.get(fault) ?? []), operation]);
  }
  return [...byFault].map(([fault, operations]) => `${fault} × ${operations.join(', ')}`).join('; ');
}

const sum = <Item>(items: readonly Item[], amountOf: (item: Item) => number): number =>
  items.reduce((total, item) => total + amountOf(item), 0);
