// docs/reliability.md and its picture, written from chaos/summaries/. Never by hand: a reader who doubts a number
// finds the file it comes from, and a test compares the page with the summaries.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSummaries, type Summary } from '../bench/summaries.ts';
import { BUSY_MS, type HoldRow, heldLongest } from './checkers/holds.ts';
import type { ControlResult } from './controls/run_control.ts';
import type { Spread } from './counts.ts';
import { PROMISES } from './judge.ts';
import { duration, number, plain, small, table } from './markdown.ts';
import { plot } from './plot.ts';
import { acknowledgedIn, type ChaosSummary, type RunSummary } from './result.ts';

export type ControlsSummary = { controls: ControlResult[] };

export type Results = {
  chaos?: Summary<ChaosSummary>;
  controls?: Summary<ControlsSummary>;
  /** Of other tools (model, fuzz, abuse, mutation), by the name of the suite. */
  others: Record<string, Summary>;
};

const DOCS = fileURLToPath(new URL('../docs/', import.meta.url));
const PICTURE = 'pictures/throughput-through-a-fault.svg';

/** As much of a hash as git shows; what follows it says that there were changes. */
const WHOLE_HASH = /^([0-9a-f]{7})[0-9a-f]{33}/;

/** Faults after which something had to start anew, and faults of a wire. */
const isCrash = (name: string): boolean => /^(kill|stop)-/.test(name);
const isCut = (name: string): boolean => /^(cut|half-open)/.test(name);

const OTHERS: Record<string, string> = {
  model: 'Random histories against a model',
  fuzz: 'Fuzzed requests',
  'abuse.node': 'Bad input, row by row, on Node',
  'abuse.deno': 'Bad input, row by row, on Deno',
  mutation: 'Mutation testing',
};

const NOT_TESTED = [
  'Power loss and a crash of the operating system: a killed process leaves what it wrote to the kernel; a disk that lies about fsync was not simulated.',
  'A full disk, a failing disk, memory that runs out.',
  'A partition between real hosts, packet loss below TCP, an asymmetric route: every wire here is loopback through a proxy that delays, cuts and swallows.',
  'Failover to a replica, and restore from a backup, under load.',
  'Hosted Supabase (two real projects, pg_cron and pg_net of the platform) and Deno as the runtime of the bridge.',
  'More than two cores, more than two servers and two workers, and a load above what two cores can carry beside the faults.',
  'macOS and Windows.',
  'Clocks of the database servers: only those of workers were wrong.',
  'Malicious insiders: an operator with the database password can break every promise.',
];

export function readResults(): Results {
  const bySuite = Object.fromEntries(readSummaries('chaos').map((summary) => [summary.suite, summary]));
  const { chaos, controls, ...others } = bySuite;
  return {
    ...(chaos && { chaos: chaos as Summary<ChaosSummary> }),
    ...(controls && { controls: controls as Summary<ControlsSummary> }),
    others,
  };
}

/** Writes page and picture and returns the page's name. */
export function writeReport(results: Results = readResults(), docs: string = DOCS): string {
  const picture = results.chaos?.result.picture;
  if (picture) {
    mkdirSync(join(docs, 'pictures'), { recursive: true });
    writeFileSync(join(docs, PICTURE), plot(picture));
  }
  const page = join(docs, 'reliability.md');
  writeFileSync(page, reportOf(results));
  return page;
}

const runsOf = ({ chaos }: Results): RunSummary[] => chaos?.result.runs ?? [];
/** I13 is judged only where a neighbour had a window with enough requests in it. */
const hasJudgedNeighbours = ({ neighbours = [] }: RunSummary): boolean =>
  neighbours.some(({ verdict }) => verdict !== 'not judged');
/** Runs from before paid orders have none. */
const PAID_PROMISES: ReadonlySet<string> = new Set(['I14', 'I15', 'I16', 'I17', 'I18']);
const hasOrders = ({ holds = [] }: RunSummary): boolean => holds.length > 0;
/** The last promise that some of the runs were judged by. */
const lastPromise = (all: readonly RunSummary[]): string =>
  all.some(hasOrders) ? 'I18' : all.some(hasJudgedNeighbours) ? 'I13' : 'I12';
const controlsOf = (results: Results): ControlResult[] => results.controls?.result.controls ?? [];
/** How often faults happened of which `isWanted` is true of the name. */
const faultsIn = (run: RunSummary, isWanted: (name: string) => boolean = () => true): number =>
  sum(Object.entries(run.faults), ([name, count]) => (isWanted(name) ? count : 0));

export function reportOf(results: Results): string {
  const sections = [
    opening(results),
    runs(results),
    promises(results),
    neighbours(results),
    holds(results),
    controls(results),
    recovery(results),
    ...Object.entries(OTHERS).map(([name, title]) => other(results, name, title)),
    notTested(results),
    repeat(),
  ];
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`;
}

function opening(results: Results): string {
  const all = runsOf(results);
  const n = sum(all, acknowledgedIn);
  const faults = (isWanted?: (name: string) => boolean) => number(sum(all, (run) => faultsIn(run, isWanted)));
  const violations = sum(
    all.flatMap((run) => Object.values(run.violations)),
    (count) => count,
  );
  const what =
    n === 0
      ? 'No run is kept yet.'
      : `${number(all.length)} ${all.length === 1 ? 'run' : 'runs'}, ${number(sum(all, (one) => one.minutes))} minutes of faults: ` +
        `${number(n)} acknowledgements, ${faults()} faults ` +
        `(${faults(isCrash)} crashes, ${faults(isCut)} cuts), ` +
        `**${number(violations)} violations** of the promises I1 to ${lastPromise(all)}.`;
  const bound =
    n > 0 && violations === 0
      ? `\n\nNone in n = ${number(n)} means, with 95 % confidence, fewer than 3/n = ${small(3 / n)} per acknowledgement under faults like these. It does not mean none.`
      : '';
  return [
    '# Reliability',
    '',
    '<!-- Written by "npm run chaos -- --keep" from chaos/summaries/. Changes made here are lost. -->',
    '',
    'What was done to Sluice, what it did, and what was not tried. Every number comes from a file in',
    '[chaos/summaries](../chaos/summaries); how it is measured is in [chaos/README.md](../chaos/README.md).',
    '',
    `${what}${bound}`,
    ...(results.chaos === undefined ? [] : ['', ...circumstances(results.chaos)]),
  ].join('\n');
}

function circumstances(origin: Summary): string[] {
  const list = (record: Record<string, string | number>) =>
    Object.entries(record)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ');
  return [
    `- Machine: ${list(origin.machine)}`,
    `- Command: \`${origin.command}\``,
    `- Product files: ${origin.product_hash} (one hash over all of them; see [bench/README.md](../bench/README.md))`,
    `- Postgres: ${list(origin.durability)}`,
    '- Parts: two Postgres servers, PostgREST, Redis, two servers, two workers, each wire through a proxy of ours; a stand-in for Stripe',
    ...(origin.note === undefined ? [] : [`- ${origin.note}`]),
  ];
}

function runs(results: Results): string {
  const all = runsOf(results);
  if (all.length === 0) return '';
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
      all.map((run) => [
        run.seed,
        run.commit.replace(WHOLE_HASH, '$1'),
        run.minutes,
        run.counts.claims.acknowledged,
        run.counts.events.acknowledged,
        run.counts.calls.acknowledged,
        run.counts.operatorActions,
        faultsIn(run),
        faultsIn(run, isCrash),
        faultsIn(run, isCut),
        run.lostLeases,
        ...(['lost', 'duplicated', 'unexpected', 'recovered'] as const).map((pick) => four(pick)(run)),
        sum(Object.values(run.violations), (count) => count),
      ]),
    ),
    '',
    'Claims, events, calls and operator: acknowledged to a client. Lost: acknowledged and not there in the end. Duplicated:',
    'there more than once. Unexpected: there, and never asked for. Recovered: never acknowledged, and there all the same, which is',
    'allowed. A lost lease is a worker that came too late and was told so.',
    ...all.flatMap((run) =>
      run.examples.map(({ promise, what }) => `\n- seed ${run.seed}: ${promise} ${what}`),
    ),
  ].join('\n');
}

function promises(results: Results): string {
  const all = runsOf(results);
  return [
    '## Promises',
    '',
    table(
      ['', 'promise', 'violations', 'seen broken by'],
      Object.entries(PROMISES).map(([name, { text }]) => [
        name,
        text,
        violationsOf(name, all),
        controlsOf(results)
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

function violationsOf(name: string, all: readonly RunSummary[]): string | number {
  if (all.length === 0) return '–';
  if (name === 'I13' && !all.some(hasJudgedNeighbours)) return 'not judged';
  if (PAID_PROMISES.has(name) && !all.some(hasOrders)) return 'not judged';
  return sum(all, (run) => run.violations[name] ?? 0);
}

function neighbours(results: Results): string {
  const rows = runsOf(results).flatMap((run) =>
    (run.neighbours ?? []).map((row) => ({ seed: run.seed, ...row })),
  );
  if (rows.length === 0) return '';
  return [
    '## Neighbours',
    '',
    'What a healthy pool and a healthy endpoint met while a neighbour was hostile and nothing else was wrong (I13).',
    '',
    table(
      ['seed', 'neighbour', 'healthy', 'requests', 'failures', 'quiet p99', 'p99', 'at most', 'verdict'],
      rows.map((row) => [
        ...[row.seed, row.neighbour, row.measure, row.requests, row.failures],
        ...[duration(row.quietP99), duration(row.p99), duration(row.limit)],
        row.why === null ? row.verdict : `${row.verdict}: ${row.why}`,
      ]),
    ),
  ].join('\n');
}

function holds(results: Results): string {
  const rows = runsOf(results).flatMap((run) => (run.holds ?? []).map((row) => ({ seed: run.seed, ...row })));
  if (rows.length === 0) return '';
  return [
    '## Holds',
    '',
    'How long after the end of its hold an order that was not bought gave its seats back (I15). Excused is the time in which the',
    'intake or a worker was down, and six seconds after.',
    '',
    longestHold(rows),
    '',
    table(
      [
        'seed',
        'orders that',
        'count',
        'late p50',
        'p99',
        'max',
        'max without what is excused',
        'bound',
        'past it',
      ],
      rows.map(({ seed, kind, count, late, lateUnexcused, boundMs, beyond }) => [
        ...[seed, kind, count, duration(late?.p50), duration(late?.p99), duration(late?.max)],
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

function controls(results: Results): string {
  const all = controlsOf(results);
  if (all.length === 0) return '';
  return [
    '## Negative controls',
    '',
    'The same runs against a Sluice that was broken on purpose. A judge that finds nothing here would find nothing anywhere.',
    '',
    table(
      ['control', 'what is broken', 'seed', 'found after', 'violations', 'for example'],
      all.map((control) => [
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

function recovery(results: Results): string {
  const all = runsOf(results);
  if (all.length === 0) return '';
  const spread = (value: Spread) => [duration(value?.p50), duration(value?.p99), duration(value?.max)];
  const kinds = [...new Set(all.flatMap((run) => Object.keys(run.faults)))].sort();
  const worst = (name: string, pick: 'p50' | 'max') =>
    Math.max(0, ...all.map((run) => run.recovery.byFault[name]?.[pick] ?? 0));
  return [
    '## Recovery',
    '',
    table(
      ['seed', 'first ack p50', 'p99', 'max', 'half throughput p50', 'p99', 'max', 'never', 'drained after'],
      all.map(({ seed, recovery: { toFirstAck, toHalfThroughput, neverRecovered, drainMs } }) => [
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
    ...(results.chaos?.result.picture
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
      kinds.map((name) => [
        name,
        sum(all, (run) => run.faults[name] ?? 0),
        duration(worst(name, 'p50')),
        duration(worst(name, 'max')),
      ]),
    ),
  ].join('\n');
}

function other({ others }: Results, name: string, title: string): string {
  const summary = others[name];
  if (summary === undefined) return '';
  const { command, commit, note, result } = summary;
  const from = { command: `\`${command}\``, commit: commit.replace(WHOLE_HASH, '$1'), ...(note && { note }) };
  return [`## ${title}`, '', plain({ ...from, ...result })].join('\n');
}

function notTested({ others }: Results): string {
  const missing = Object.entries(OTHERS).filter(([name]) => others[name] === undefined);
  return [
    '## Not tested',
    '',
    ...NOT_TESTED.map((line) => `- ${line}`),
    ...missing.map(([, title]) => `- ${title}: no summary is kept.`),
  ].join('\n');
}

function repeat(): string {
  return [
    '## Repeat it',
    '',
    '```sh',
    'npm run chaos -- --seed 1 --minutes 10 --keep',
    '```',
    '',
    'A seed repeats which fault happens when, to what and for how long, and what each client asks; not the microsecond.',
  ].join('\n');
}

const sum = <Item>(items: readonly Item[], amountOf: (item: Item) => number): number =>
  items.reduce((total, item) => total + amountOf(item), 0);
