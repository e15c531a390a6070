// docs/reliability.md and its picture, written from chaos/summaries/. Never by hand: a reader who doubts a number
// finds the file it comes from, and a test compares the page with the summaries.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dateOf, isOfTree, shortCommit, shortHash, standingOf } from '../bench/origin.ts';
import { productHash } from '../bench/provenance.ts';
import { readSummaries, type Summary } from '../bench/summaries.ts';
import type { ControlResult } from './controls/run_control.ts';
import { plain, table } from './markdown.ts';
import { plot } from './plot.ts';
import * as parts from './report_runs.ts';
import type { ChaosSummary } from './result.ts';

export type ControlsSummary = { controls: ControlResult[] };

export type Results = {
  chaos?: Summary<ChaosSummary>;
  controls?: Summary<ControlsSummary>;
  /** Of other tools (model, fuzz, abuse, mutation, cells), by the name of the suite. */
  others: Record<string, Summary>;
};

/** From the root. */
export const REPORT = 'docs/reliability.md';
const DOCS = fileURLToPath(new URL('../docs/', import.meta.url));
const NO_RUNS: ChaosSummary = {
  ...{ runs: [], faults: {}, neighbours: [], holds: [], coverage: null, picture: null },
};

/** In the order of the page. A kept suite without a title here is shown under its own name. */
const TITLES: Record<string, string> = {
  model: 'Random histories against a model',
  bugs: 'Bugs planted again',
  cells: 'Failovers of cells',
  fuzz: 'Fuzzed requests',
  'abuse.node': 'Bad input, row by row, on Node',
  'abuse.deno': 'Bad input, row by row, on Deno',
  mutation: 'Mutation testing',
};

/** Said as long as no kept run tells of it. */
const NOT_KEPT: readonly (readonly [line: string, isKept: (results: Results) => boolean])[] = [
  [
    'Power loss and a crash of the operating system: a killed process leaves what it wrote to the kernel.',
    ({ chaos }) => (chaos?.result.faults['power-cut']?.times ?? 0) > 0,
  ],
  ['Failover to a replica under load.', ({ others }) => others.cells !== undefined],
];
const NOT_TESTED = [
  'A disk that says that it has written and has not; a full disk, a failing disk, memory that runs out.',
  'A partition between real hosts, packet loss below TCP, an asymmetric route: every wire here is loopback through a proxy that delays, cuts and swallows.',
  'Restore from a backup under load.',
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
  const file = join(docs, parts.PICTURE);
  if (picture) {
    mkdirSync(join(docs, 'pictures'), { recursive: true });
    writeFileSync(file, plot(picture));
  } else rmSync(file, { force: true });
  const page = join(docs, 'reliability.md');
  writeFileSync(page, reportOf(results));
  return page;
}

/** `tree` is the hash of the product files beside the page. */
export function reportOf(results: Results, tree: string = productHash()): string {
  const runs = results.chaos?.result ?? NO_RUNS;
  const controls = results.controls?.result.controls ?? [];
  const names = [...new Set([...Object.keys(TITLES), ...Object.keys(results.others)])];
  const sections = [
    opening(results, runs),
    sources(results, tree),
    parts.runsOf(runs),
    parts.promisesOf(runs, controls),
    parts.neighboursOf(runs),
    parts.holdsOf(runs),
    parts.controlsOf(controls),
    parts.recoveryOf(runs),
    parts.coverageTable(runs),
    ...names.map((name) => other(results, name, tree)),
    notTested(results),
    repeat(),
  ];
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`;
}

function opening({ chaos }: Results, runs: ChaosSummary): string {
  return [
    '# Reliability',
    '',
    '<!-- Written by "npm run bench -- figures" from chaos/summaries/. Changes made here are lost. -->',
    '',
    'What was done to Sluice, what it did, and what was not tried. Every number comes from a file in',
    '[chaos/summaries](../chaos/summaries); how it is measured is in [chaos/README.md](../chaos/README.md). [bugs.md](bugs.md) lists every',
    'bug that was fixed, and what finds it now.',
    '',
    parts.whatHappened(runs),
    ...(chaos === undefined ? [] : ['', ...circumstances(chaos)]),
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

/** Which version of the product each part of the page tells of. */
function sources({ chaos, controls, others }: Results, tree: string): string {
  const kept = [...(chaos ? [chaos] : []), ...(controls ? [controls] : []), ...Object.values(others)];
  if (kept.length === 0) return '';
  const versions = new Set(kept.map(({ product_hash }) => product_hash)).size;
  const ofTree = kept.filter((summary) => isOfTree(summary, tree)).length;
  return [
    '## Where the numbers come from',
    '',
    table(
      ['suite', 'on', 'commit', 'product files', 'of this tree'],
      kept.map((summary) => [
        `[${summary.suite}](../chaos/summaries/${summary.suite}.json)`,
        ...[dateOf(summary), shortCommit(summary.commit), shortHash(summary.product_hash)],
        isOfTree(summary, tree) ? 'yes' : '**no**',
      ]),
    ),
    '',
    ofTree === kept.length
      ? 'All of them are of the product files of this tree.'
      : `**${kept.length - ofTree} of ${kept.length} are of other product files than those of this tree**, and they are of ${versions} ${versions === 1 ? 'version' : 'versions'}. What they show was true of theirs.`,
  ].join('\n');
}

function other({ others }: Results, name: string, tree: string): string {
  const summary = others[name];
  if (summary === undefined) return '';
  const { command, commit, product_hash, note, result } = summary;
  const from = {
    command: `\`${command}\``,
    commit: `${shortCommit(commit)} (product files ${shortHash(product_hash)}). ${standingOf(summary, tree)}`,
    ...(note && { note }),
  };
  return [`## ${TITLES[name] ?? name}`, '', plain({ ...from, ...result })].join('\n');
}

function notTested(results: Results): string {
  const missing = Object.entries(TITLES).filter(([name]) => results.others[name] === undefined);
  return [
    '## Not tested',
    '',
    ...NOT_KEPT.filter(([, isKept]) => !isKept(results)).map(([line]) => `- ${line}`),
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
