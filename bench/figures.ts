// The figures in pages. A block between two comments is written from the kept summaries and never by hand: `npm run bench -- figures`
// writes all blocks, and a test compares them with the summaries.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { table } from '../chaos/markdown.ts';
import { REPORT, writeReport } from '../chaos/report.ts';
import { StackError } from '../src/failure.ts';
import { PROJECT_ROOT } from '../src/project_root.ts';
import { UsageError } from './command.ts';
import { originOf } from './origin.ts';
import { productHash } from './provenance.ts';
import { whole } from './rows.ts';
import { type AnyRow, type Demand, demandLine } from './suite.ts';
import { SUITES } from './suites.ts';
import { keepJoined, keepSummary, type Raw, readSummaries, type Summary } from './summaries.ts';

type BenchResult = { rows: AnyRow[]; demands: Demand[] };
export type Kept = Record<string, Summary<BenchResult>>;
/** The text of a block, from the kept summaries and the hash of the tree's product files. */
type Block = (kept: Kept, tree: string) => string;
/** A row of a small table: how the page calls it, and which row of the suite it is. */
type Choice = readonly [label: string, row: { name: string; clients?: number; batch?: number }];

const BLOCK = /(<!-- figures: ([a-z-]+) -->\n)[\s\S]*?(<!-- end of figures -->)/g;

/** Of a command that ran a part of a suite, and of one that ran a row shorter than it is. */
const PART = / --row\b/;
const SHORTENED = / --minutes\b/;

const CLAIM_WAYS: readonly Choice[] = [
  ['one claim a transaction, 8 clients, SQL', { name: 'single', clients: 8 }],
  ['HTTP, 64 clients, coalesced', { name: 'http-coalesced', clients: 64 }],
  ['HTTP, 256 clients, coalesced', { name: 'http-coalesced', clients: 256 }],
  ['`claim_batch` of 1,000, two connections', { name: 'batch', clients: 2, batch: 1000 }],
  ['"sold out"', { name: 'sold-out' }],
];
const TICKET_WAYS: readonly Choice[] = [
  ['`--workers 1 --batch 100`', { name: 'bridge', clients: 1, batch: 100 }],
  ['`--workers 1 --batch 1000`', { name: 'bridge', clients: 1, batch: 1000 }],
  ['`--workers 2 --batch 1000`', { name: 'bridge', clients: 2, batch: 1000 }],
  ['`--workers 4 --batch 1000`', { name: 'bridge', clients: 4, batch: 1000 }],
  ['`--workers 2 --batch 5000`', { name: 'bridge', clients: 2, batch: 5000 }],
];

/** The row of the whole way that takes ten minutes. */
const LONG_ROW = 'large-64';
const WAYS: Record<string, string> = {
  sluice: 'Sluice, as it is deployed',
  plain: 'plain design: one statement for each claim, one worker loop',
  redis: 'Redis 7: a Lua claim, a stream, `appendfsync always`, a worker to the same ledger',
};

/** Each page with figures, and what its blocks are made of. */
export const PAGES: Record<string, Record<string, Block>> = {
  'README.md': { whole: wholeWay },
  'bench/README.md': { suites },
  'docs/tune.md': {
    claims: (kept, tree) => rates(kept, tree, 'claims', ['way', 'claims a second'], CLAIM_WAYS),
    tickets: (kept, tree) =>
      rates(kept, tree, 'bridge', ['`npx sluice work`', 'tickets a second'], TICKET_WAYS),
  },
};

export function readKept(root = PROJECT_ROOT): Kept {
  return Object.fromEntries(readSummaries('bench', root).map((summary) => [summary.suite, summary])) as Kept;
}

/** The page with its blocks as the summaries make them; everything else stays. */
export function pageOf(name: string, text: string, kept: Kept, tree: string): string {
  const blocks = PAGES[name] ?? {};
  const seen: string[] = [];
  const page = text.replace(BLOCK, (_all, begin: string, block: string, end: string) => {
    const write = blocks[block];
    if (write === undefined) throw new Error(`${name} has a block "${block}" that no code writes`);
    seen.push(block);
    return `${begin}\n${write(kept, tree)}\n\n${end}`;
  });
  const missing = Object.keys(blocks).filter((block) => !seen.includes(block));
  if (missing.length > 0) throw new Error(`${name} has no block "${missing.join('", "')}"`);
  return page;
}

/** Writes every page with figures and returns their names. */
export function writeFigures(root = PROJECT_ROOT): string[] {
  const tree = productHash(root);
  for (const name of Object.keys(PAGES)) {
    const file = join(root, name);
    writeFileSync(file, pageOf(name, readFileSync(file, 'utf8'), readKept(root), tree));
  }
  writeReport();
  return [...Object.keys(PAGES), REPORT];
}

/** Makes a summary of a raw result of the bench, and returns its name. */
export function keepRaw(file: string, root = PROJECT_ROOT): string {
  const raw: Raw<BenchResult> = JSON.parse(readFileSync(file, 'utf8'));
  if (!Object.hasOwn(SUITES, raw.suite))
    throw new UsageError(
      `${file} is not a raw result of the bench. Suites: ${Object.keys(SUITES).join(', ')}.`,
    );
  if (SHORTENED.test(raw.command))
    throw new UsageError(`${file} has a shortened row: it would stand for the whole of it.`);
  return keepResult(raw, root);
}

/**
 * Keeps the result of a run as its suite's summary, and returns its name. Some rows of a suite that allows it are joined to the kept
 * rows of the same product files, machine and settings; a summary of other product files makes room for them.
 */
export function keepResult(raw: Raw<BenchResult>, root = PROJECT_ROOT): string {
  if (!PART.test(raw.command)) return keepSummary('bench', raw, raw.result, root);
  const suite = SUITES[raw.suite];
  if (suite?.demands === undefined)
    throw new UsageError(`this is a part of ${raw.suite}: it would replace the numbers of the whole.`);
  const order = suite.rowNames?.(false) ?? [];
  const demandsOf = suite.demands;
  return keepJoined(
    'bench',
    raw,
    (kept, added) => {
      const measured = new Set(added.rows.map(({ name }) => name));
      const rows = [...kept.rows.filter(({ name }) => !measured.has(name)), ...added.rows].sort(
        (one, other) => order.indexOf(one.name) - order.indexOf(other.name),
      );
      return { rows, demands: demandsOf(rows) };
    },
    root,
  );
}

function wholeWay(kept: Kept, tree: string): string {
  const summary = kept.whole;
  const rows = summary?.result.rows.filter(({ name }) => name === LONG_ROW) ?? [];
  if (summary === undefined || rows.length === 0)
    return `No run of \`npm run bench -- whole --row ${LONG_ROW}\` is kept.`;
  const cells = Object.entries(WAYS).flatMap(([way, label]) =>
    rows
      .filter((row) => row.way === way)
      .map((row) => [label, whole(row.rate), whole(row.claim_p99_ms), whole(row.ticket_p99_ms)]),
  );
  const head = ['from HTTP to the ticket', 'tickets a second', 'claim p99, ms', 'claim to ticket p99, ms'];
  return [table(head, cells), originOf(summary, tree)].join('\n\n');
}

function suites(kept: Kept, tree: string): string {
  const parts = Object.entries(SUITES).flatMap(([name, suite]) => {
    const summary = kept[name];
    if (summary === undefined) return [];
    const { rows, demands } = summary.result;
    const shown = [
      suite.table(rows),
      ...(demands.length === 0 ? [] : ['', 'must show', ...demands.map(demandLine)]),
    ];
    return [`### ${name}`, originOf(summary, tree), ['```text', ...shown, '```'].join('\n')];
  });
  const missing = Object.keys(SUITES).filter((name) => kept[name] === undefined);
  return [
    ...parts,
    ...(missing.length === 0
      ? []
      : [
          `No run is kept of ${missing.map((name) => `\`${name}\``).join(', ')}: this page has no figures of these suites.`,
        ]),
  ].join('\n\n');
}

function rates(
  kept: Kept,
  tree: string,
  suite: string,
  head: [string, string],
  picks: readonly Choice[],
): string {
  const summary = kept[suite];
  if (summary === undefined) return `No run of \`npm run bench -- ${suite}\` is kept.`;
  const rows = picks.map(([label, wanted]) => [label, whole(rowOf(summary, wanted).rate)]);
  return [table(head, rows), originOf(summary, tree)].join('\n\n');
}

function rowOf({ suite, result }: Summary<BenchResult>, wanted: Choice[1]): AnyRow {
  const isWanted = (row: AnyRow) => Object.entries(wanted).every(([name, value]) => row[name] === value);
  const row = result.rows.find(isWanted);
  if (row === undefined)
    throw new StackError(
      `the kept run of ${suite} has no row ${JSON.stringify(wanted)}`,
      'change the rows that bench/figures.ts shows, or run the whole suite again',
    );
  return row;
}
