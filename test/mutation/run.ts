// `npm run mutation`: changes the core in thousands of small ways and counts how many of them some test notices.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { commit } from '../../bench/machine.ts';
import { type MutantResult, mutate } from './mutate.ts';
import { PARTS, type Part } from './parts.ts';
import { type PartScore, scoreOf } from './score.ts';

const RESULT = fileURLToPath(new URL('../../chaos/results/mutation.json', import.meta.url));
/** What issue and report ask of every part. */
const MIN_SCORE_PERCENT = 80;
/** Hours of work that nobody waits for: whoever else uses the machine goes first. */
const NICENESS = 10;
const CONCURRENCY = /^[1-9]\d?$/;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

const usage = `npm run mutation -- [--part name]… [--file name]… [--concurrency n]

  --part name       only this part: ${PARTS.map(({ name }) => name).join(', ')}
  --file name       only sources whose path ends so; shows survivors, keeps no score
  --concurrency n   mutants that are tried at the same time (default 2)

Scores are kept in chaos/results/mutation.json. Ends with code 1 where one is below ${MIN_SCORE_PERCENT} %.`;

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      part: { type: 'string', multiple: true, default: [] },
      file: { type: 'string', multiple: true, default: [] },
      concurrency: { type: 'string', default: '2' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const parts = selected(values.part, values.file);
  const mistake = mistakeIn(values.part, parts, values.concurrency);
  if (mistake !== undefined) {
    console.error(`${mistake}\nhint: --help tells more`);
    return EXIT_USAGE;
  }
  setPriority(NICENESS);
  const scores: PartScore[] = [];
  for (const part of parts) {
    const results = await mutate(part, Number(values.concurrency));
    for (const mutant of results.filter(({ status }) => status === 'Survived' || status === 'NoCoverage'))
      console.log(survivorLine(mutant));
    const score = { ...scoreOf(part, results), at: new Date().toISOString(), commit: commit() };
    scores.push(score);
    console.log(scoreLine(score));
    if (values.file.length === 0) keep(score);
  }
  return scores.every(({ score }) => score >= MIN_SCORE_PERCENT) ? 0 : EXIT_FAILED;
}

function mistakeIn(
  names: readonly string[],
  parts: readonly Part[],
  concurrency: string,
): string | undefined {
  const unknown = names.filter((name) => !PARTS.some((part) => part.name === name));
  if (unknown.length > 0) return `There is no part ${unknown.join(', ')}.`;
  if (parts.length === 0) return 'No source of these parts is called so.';
  return CONCURRENCY.test(concurrency)
    ? undefined
    : `--concurrency ${concurrency} is not a number from 1 to 99.`;
}

function selected(names: readonly string[], files: readonly string[]): Part[] {
  return PARTS.filter(({ name }) => names.length === 0 || names.includes(name))
    .map((part) => ({
      ...part,
      sources: part.sources.filter(
        (source) => files.length === 0 || files.some((file) => source.endsWith(`/${file}`)),
      ),
    }))
    .filter(({ sources }) => sources.length > 0);
}

function survivorLine({ fileName, location, mutatorName, replacement, status }: MutantResult): string {
  const file = relative('/', fileName).replace(/^.*\/_shared\//, '');
  const { start, end } = location;
  const text = (replacement ?? '').replace(/\s+/g, ' ');
  return `${status} ${file}:${start.line}:${start.column}-${end.line}:${end.column} ${mutatorName} → ${text}`;
}

function scoreLine({ name, score, mutants, killed, timeout, survived }: PartScore): string {
  return `${name}: ${score.toFixed(1)} % of ${mutants} mutants (${killed} killed, ${timeout} timed out, ${survived} survived)`;
}

/** A part's score replaces its old one; the others stay, each with the commit it was measured on. */
function keep(score: PartScore & { at: string; commit: string }): void {
  const others = readKept().filter(({ name }) => name !== score.name);
  const parts = PARTS.flatMap(({ name }) => [score, ...others].filter((kept) => kept.name === name));
  mkdirSync(dirname(RESULT), { recursive: true });
  const { at, commit } = score;
  writeFileSync(RESULT, `${JSON.stringify({ at, commit, parts }, null, 2)}\n`);
}

function readKept(): PartScore[] {
  try {
    return JSON.parse(readFileSync(RESULT, 'utf8')).parts;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** A wrong option is told in two lines; everything else shows where it happened. */
function report(error: unknown): number {
  if (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')) {
    console.error(`${error.message}\nhint: --help tells more`);
    return EXIT_USAGE;
  }
  console.error(error);
  return EXIT_FAILED;
}

process.exitCode = await main(process.argv.slice(2)).catch(report);
