// `npm run mutation`: changes the core in thousands of small ways and counts how many of them some test notices.

import { setPriority } from 'node:os';
import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import { EXIT_FAILED, reportFailure, UsageError } from '../../bench/command.ts';
import { beginRun, keepJoined, writeRaw } from '../../bench/summaries.ts';
import { writeReport } from '../../chaos/report.ts';
import { BUGS, type Bug } from './bugs.ts';
import { type MutantResult, mutate } from './mutate.ts';
import { PARTS, type Part } from './parts.ts';
import { joinPlanted, plantedOf, tryBugs } from './plant.ts';
import { joinParts, type PartScore, scoreOf } from './score.ts';

/** The lowest score allowed for a part. */
const MIN_SCORE_PERCENT = 80;
/** A run takes hours and is not urgent: other work on the machine goes first. */
const NICENESS = 10;
const CONCURRENCY = /^[1-9]\d?$/;
/** Nothing here talks to a database. */
const NO_DATABASE = { database: 'none' };
const OWN_DATABASES = { database: 'those of the tests' };

const usage = `npm run mutation -- [--part name]… [--file name]… [--concurrency n] [--keep]
npm run mutation -- --bugs [--bug name]… [--concurrency n] [--keep]

  --part name       only this part: ${PARTS.map(({ name }) => name).join(', ')}
  --file name       only sources whose path ends so; shows survivors
  --bug name        only this bug
  --concurrency n   mutants or bugs that are tried at the same time (default 2)
  --keep            also writes chaos/summaries/mutation.json, which git keeps, and docs/reliability.md from it, beside the
                    kept parts of the same product files; refuses where these changed meanwhile

--bugs plants the bugs of test/mutation/planted instead, each in a copy of the tree, and runs the test that has to find it, before
and after. With --keep it writes chaos/summaries/bugs.json, beside the kept bugs of the same product files. Ends with code 1 where
one is not found.

Scores go to results/mutation/, which git ignores. Ends with code 1 where one is below ${MIN_SCORE_PERCENT} %.`;

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      part: { type: 'string', multiple: true, default: [] },
      file: { type: 'string', multiple: true, default: [] },
      concurrency: { type: 'string', default: '2' },
      keep: { type: 'boolean', default: false },
      bugs: { type: 'boolean', default: false },
      bug: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  if (!CONCURRENCY.test(values.concurrency))
    throw new UsageError(`--concurrency ${values.concurrency} is not a number from 1 to 99.`);
  const concurrency = Number(values.concurrency);
  const command = ['npm run mutation --', ...args].join(' ');
  if (values.bugs || values.bug.length > 0)
    return plantAll(bugsNamed(values.bug), concurrency, command, values.keep);
  const parts = selected(values.part, values.file);
  const mistake = mistakeIn(values.part, parts);
  if (mistake !== undefined) throw new UsageError(mistake);
  if (values.keep && values.file.length > 0)
    throw new UsageError('--keep: a summary is of whole parts; leave out --file.');
  const run = beginRun('mutation', command);
  setPriority(NICENESS);
  const scores: PartScore[] = [];
  for (const part of parts) {
    const results = await mutate(part, concurrency);
    for (const mutant of results.filter(({ status }) => status === 'Survived' || status === 'NoCoverage'))
      console.log(survivorLine(mutant));
    const score = scoreOf(part, results);
    scores.push(score);
    console.log(scoreLine(score));
  }
  const raw = run.end(NO_DATABASE, { parts: scores });
  console.log(`raw result: ${writeRaw('mutation', raw, 'mutation')}`);
  if (values.keep) console.log(`summary: ${keepJoined('chaos', raw, joinParts)}, ${writeReport()}`);
  return scores.every(({ score }) => score >= MIN_SCORE_PERCENT) ? 0 : EXIT_FAILED;
}

async function plantAll(
  chosen: readonly Bug[],
  concurrency: number,
  command: string,
  isKept: boolean,
): Promise<number> {
  const run = beginRun('bugs', command);
  setPriority(NICENESS);
  const tried = await tryBugs(chosen, concurrency, ({ verdict, name, was, test }) =>
    console.log(`${verdict.padEnd(6)} ${name}: ${was} (${test})`),
  );
  const planted = plantedOf(tried);
  console.log(`${planted.found} of ${planted.planted} planted bugs found`);
  const raw = run.end(OWN_DATABASES, planted);
  console.log(`raw result: ${writeRaw('mutation', raw, 'bugs')}`);
  if (isKept) console.log(`summary: ${keepJoined('chaos', raw, joinPlanted)}, ${writeReport()}`);
  return planted.found === planted.planted ? 0 : EXIT_FAILED;
}

/** All where none is named. */
function bugsNamed(names: readonly string[]): readonly Bug[] {
  const unknown = names.filter((name) => !BUGS.some((bug) => bug.name === name));
  if (unknown.length > 0) throw new UsageError(`No bug is called ${unknown.join(', ')}.`);
  return BUGS.filter(({ name }) => names.length === 0 || names.includes(name));
}

function mistakeIn(names: readonly string[], parts: readonly Part[]): string | undefined {
  const unknown = names.filter((name) => !PARTS.some((part) => part.name === name));
  if (unknown.length > 0) return `Unknown part ${unknown.join(', ')}.`;
  return parts.length === 0 ? 'No source of these parts has this name.' : undefined;
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

process.exitCode = await main(process.argv.slice(2)).catch(reportFailure);
