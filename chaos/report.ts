// docs/reliability.md and its picture, written from what is kept in chaos/results/. Never by hand: whoever doubts a number
// finds the file it comes from.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ControlResult } from './controls/run_control.ts';
import type { Spread } from './counts.ts';
import { PROMISES } from './judge.ts';
import { duration, number, plain, small, table } from './markdown.ts';
import { clearest, plot } from './plot.ts';
import { acknowledgedIn, type RunResult } from './result.ts';

export type Results = {
  runs: RunResult[];
  controls: ControlResult[];
  /** Results of other tools (model, fuzz, abuse, mutation) by the name of their file. */
  others: Record<string, Record<string, unknown>>;
};

const RESULTS = fileURLToPath(new URL('./results/', import.meta.url));
const DOCS = fileURLToPath(new URL('../docs/', import.meta.url));
const PICTURE = 'pictures/throughput-through-a-fault.svg';
const CONTROLS_FILE = 'controls';

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

export function readResults(dir: string = RESULTS): Results {
  const files = readdirSync(dir).filter((file) => file.endsWith('.json'));
  const results: Results = { runs: [], controls: [], others: {} };
  for (const file of files.sort()) {
    const content = JSON.parse(readFileSync(join(dir, file), 'utf8'));
    const name = file.slice(0, -'.json'.length);
    if (content.kind === 'chaos') results.runs.push(content);
    else if (name === CONTROLS_FILE) results.controls = content.controls;
    else results.others[name] = content;
  }
  results.runs.sort((one, other) => one.seed - other.seed);
  return results;
}

/** Keeps a run, so that the next report has it. Returns the file's name. */
export function keepRun(run: RunResult, dir: string = RESULTS): string {
  return keep(`seed-${run.seed}`, run, dir);
}

export function keepControls(controls: readonly ControlResult[], dir: string = RESULTS): string {
  return keep(CONTROLS_FILE, { controls }, dir);
}

function keep(name: string, content: unknown, dir: string): string {
  mkdirSync(dir, { recursive: true });
  const file = join(dir, `${name}.json`);
  writeFileSync(file, `${JSON.stringify(content, null, 1)}\n`);
  return file;
}

/** Writes page and picture and returns the page's name. */
export function writeReport(results: Results = readResults(), docs: string = DOCS): string {
  const run = clearest(results.runs);
  const picture = run && plot(run);
  if (picture !== undefined) {
    mkdirSync(join(docs, 'pictures'), { recursive: true });
    writeFileSync(join(docs, PICTURE), picture);
  }
  const page = join(docs, 'reliability.md');
  writeFileSync(page, reportOf(results, picture !== undefined));
  return page;
}

export function reportOf(results: Results, hasPicture: boolean): string {
  const sections = [
    opening(results),
    runs(results),
    promises(results),
    controls(results),
    recovery(results, hasPicture),
    ...Object.entries(OTHERS).map(([name, title]) => other(results, name, title)),
    notTested(results),
    repeat(),
  ];
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`;
}

function opening({ runs: all }: Results): string {
  const n = all.map(acknowledgedIn).reduce((sum, count) => sum + count, 0);
  const faults = all.flatMap((run) => run.faults);
  const violations = all
    .flatMap((run) => Object.values(run.violations))
    .reduce((sum, count) => sum + count, 0);
  const [run] = all;
  const what =
    n === 0
      ? 'No run is kept yet.'
      : `${number(all.length)} ${all.length === 1 ? 'run' : 'runs'}, ${number(sum(all, (one) => one.minutes))} minutes of faults: ` +
        `${number(n)} acknowledgements, ${number(faults.length)} faults ` +
        `(${number(faults.filter(({ name }) => isCrash(name)).length)} crashes, ${number(faults.filter(({ name }) => isCut(name)).length)} cuts), ` +
        `**${number(violations)} violations** of the promises I1 to I12.`;
  const bound =
    n > 0 && violations === 0
      ? `\n\nNone in n = ${number(n)} means, with 95 % confidence, fewer than 3/n = ${small(3 / n)} per acknowledgement under faults like these. It does not mean none.`
      : '';
  return [
    '# Reliability',
    '',
    '<!-- Written by "npm run chaos -- --report" from chaos/results/. Changes made here are lost. -->',
    '',
    'What was done to Sluice, what it did, and what was not tried. Every number comes from a file in',
    '[chaos/results](../chaos/results); how it is measured is in [chaos/README.md](../chaos/README.md).',
    '',
    `${what}${bound}`,
    ...(run === undefined ? [] : ['', ...circumstances(run)]),
  ].join('\n');
}

function circumstances(run: RunResult): string[] {
  const list = (record: Record<string, string | number>) =>
    Object.entries(record)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ');
  return [
    `- Machine: ${list(run.machine)}`,
    `- Command: \`${run.command}\``,
    `- Postgres: ${list(run.durability)}`,
    '- Parts: two Postgres servers, PostgREST, Redis, two servers, two workers, each wire through a proxy of ours',
  ];
}

function runs({ runs: all }: Results): string {
  if (all.length === 0) return '';
  const four = (pick: 'lost' | 'duplicated' | 'unexpected' | 'recovered') => (run: RunResult) =>
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
        run.faults.length,
        run.faults.filter(({ name }) => isCrash(name)).length,
        run.faults.filter(({ name }) => isCut(name)).length,
        run.lostLeases,
        ...(['lost', 'duplicated', 'unexpected', 'recovered'] as const).map((pick) => four(pick)(run)),
        sum(Object.values(run.violations), (count) => count),
      ]),
    ),
    '',
    'Claims, events, calls and operator: acknowledged to a client. Lost: acknowledged and not there in the end. Duplicated:',
    'there more than once. Unexpected: there, and nobody asked. Recovered: never acknowledged, and there all the same, which is',
    'allowed. A lost lease is a worker that came too late and was told so.',
    ...all.flatMap((run) =>
      run.examples.map(({ promise, what }) => `\n- seed ${run.seed}: ${promise} ${what}`),
    ),
  ].join('\n');
}

function promises({ runs: all, controls: caught }: Results): string {
  return [
    '## Promises',
    '',
    table(
      ['', 'promise', 'violations', 'seen broken by'],
      Object.entries(PROMISES).map(([name, { text }]) => [
        name,
        text,
        all.length === 0 ? '–' : sum(all, (run) => run.violations[name] ?? 0),
        caught
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

function controls({ controls: all }: Results): string {
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

function recovery({ runs: all }: Results, hasPicture: boolean): string {
  if (all.length === 0) return '';
  const spread = (value: Spread) => [duration(value?.p50), duration(value?.p99), duration(value?.max)];
  const kinds = [...new Set(all.flatMap((run) => Object.keys(run.recovery.byFault)))].sort();
  const worst = (name: string, pick: 'p50' | 'max') =>
    Math.max(0, ...all.map((run) => run.recovery.byFault[name]?.toFirstAck?.[pick] ?? 0));
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
    ...(hasPicture
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
        sum(all, (run) => run.recovery.byFault[name]?.count ?? 0),
        duration(worst(name, 'p50')),
        duration(worst(name, 'max')),
      ]),
    ),
  ].join('\n');
}

function other({ others }: Results, name: string, title: string): string {
  const result = others[name];
  return result === undefined ? '' : [`## ${title}`, '', plain(result)].join('\n');
}

function notTested({ others }: Results): string {
  const missing = Object.entries(OTHERS).filter(([name]) => others[name] === undefined);
  return [
    '## Not tested',
    '',
    ...NOT_TESTED.map((line) => `- ${line}`),
    ...missing.map(([, title]) => `- ${title}: no result is kept in chaos/results.`),
  ].join('\n');
}

function repeat(): string {
  return [
    '## Repeat it',
    '',
    '```sh',
    'npm run chaos -- --seed 1 --minutes 10 --report',
    '```',
    '',
    'A seed repeats which fault happens when, to what and for how long, and what each client asks; not the microsecond.',
  ].join('\n');
}

const sum = <Item>(items: readonly Item[], amountOf: (item: Item) => number): number =>
  items.reduce((total, item) => total + amountOf(item), 0);
