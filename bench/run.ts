// `npm run bench -- <suite>`: runs a suite on databases of its own and shows, and keeps, what came out.

import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { reportFailure, UsageError } from './command.ts';
import { keepRaw, keepResult, writeFigures } from './figures.ts';
import { type AnyRow, type Demand, demandLine, type Suite } from './suite.ts';
import { SUITES } from './suites.ts';
import { beginRun, type Raw, writeRaw } from './summaries.ts';

/** Not a suite: writes pages. */
const FIGURES = 'figures';
/** The last minute is compared with the first. */
const LEAST_MINUTES = 2;

const usage = `npm run bench -- <suite> [--json file] [--keep | --quick] [--against folder] [--row name[,name]] [--minutes n]
npm run bench -- ${FIGURES} [raw result]…

Suites:
${Object.entries(SUITES)
  .map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`)
  .join('\n')}

  --json file   also writes the result there, for machines
  --keep        also writes bench/summaries/<suite>.json, which git keeps, and the figures in pages from it; refuses where the
                product files changed meanwhile. With --row (${takers(({ demands }) => demands)}) the rows are joined to the kept ones
  --quick       everything once, small and within a minute: shows that it runs, proves nothing about speed
  --against folder  ${takers(({ compares }) => compares)}: also measures another checkout, with its packages installed
  --row names   ${takers(({ rowNames }) => rowNames)}: only these rows. A demand whose rows are missing is not measured
  --minutes n   ${takers(({ hasMinutes }) => hasMinutes)}: how long its longest row takes

The raw result of a run without --quick goes to results/bench/, which git ignores.

${FIGURES} keeps the summaries of raw results that are named, and writes the figures in bench/README.md, docs/tune.md and
docs/reliability.md from all kept summaries. Run it also when a page no longer says right whether its figures are of this tree.

Examples:
  npm run bench -- claims --json claims.json
  npm run bench -- whole --row held --minutes 5
  npm run bench -- ${FIGURES}`;

/** The suites that take an option. */
function takers(takes: (suite: Suite) => unknown): string {
  return Object.entries(SUITES)
    .filter(([, suite]) => takes(suite))
    .map(([name]) => name)
    .join(', ');
}

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      json: { type: 'string' },
      keep: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      against: { type: 'string' },
      row: { type: 'string' },
      minutes: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const [name, ...rest] = positionals;
  if (name === FIGURES) {
    for (const file of rest) console.log(`summary: ${keepRaw(resolve(file))}`);
    console.log(`written: ${writeFigures().join(', ')}`);
    return 0;
  }
  const suite = name !== undefined && Object.hasOwn(SUITES, name) ? SUITES[name] : undefined;
  if (name === undefined || suite === undefined || rest.length > 0) {
    const wrong = name === undefined ? 'Which suite?' : `Unknown suite ${positionals.join(' ')}.`;
    throw new UsageError(`${wrong} Suites: ${Object.keys(SUITES).join(', ')}.`);
  }
  if (values.quick && values.keep)
    throw new UsageError('--keep: a quick run proves nothing about speed, so its numbers are not kept.');
  if (values.keep && values.minutes !== undefined)
    throw new UsageError('--keep: a shortened row would stand for the whole of it.');
  if (values.keep && values.row !== undefined && suite.demands === undefined)
    throw new UsageError('--keep: a part of a suite would replace the numbers of the whole.');
  if (values.against !== undefined && !suite.compares)
    throw new UsageError(`--against: ${name} measures this checkout only.`);
  const chosen = chosenRows(name, suite, values);
  const run = beginRun(name, ['npm run bench --', ...args].join(' '));
  const { settings, rows, demands, notes } = await suite.run({
    quick: values.quick,
    ...(values.against !== undefined && { against: resolve(values.against) }),
    ...(chosen !== undefined && { rows: chosen }),
    ...(values.minutes !== undefined && { minutes: minutesOf(name, suite, values.minutes) }),
    progress: (line) => process.stderr.write(`${line}\n`),
  });
  const heading = values.quick ? 'must show (a quick run proves none of it)' : 'must show';
  const shown = [suite.table(rows), ...(notes === undefined ? [] : [notes])].join('\n\n');
  console.log(`\n${shown}\n\n${heading}\n${demands.map(demandLine).join('\n')}`);
  const raw = run.end(settings, { rows, demands });
  if (values.json !== undefined)
    writeFileSync(resolve(values.json), `${JSON.stringify(flat(raw), null, 2)}\n`);
  if (!values.quick) console.log(`\nraw result: ${writeRaw('bench', raw, name)}`);
  if (values.keep) {
    console.log(`summary: ${keepResult(raw)}`);
    console.log(`written: ${writeFigures().join(', ')}`);
  }
  return 0;
}

function chosenRows(
  name: string,
  { rowNames, againstRows = [] }: Suite,
  { row, quick, against }: { row?: string; quick: boolean; against?: string },
): string[] | undefined {
  if (row === undefined) return undefined;
  if (rowNames === undefined) throw new UsageError(`--row: ${name} runs as a whole.`);
  const known = rowNames(quick);
  const chosen = row.split(',');
  const unknown = chosen.filter((one) => !known.includes(one));
  if (unknown.length > 0)
    throw new UsageError(
      `--row: ${name} has no row ${unknown.join(', ')}${quick ? ' in a quick run' : ''}. Rows: ${known.join(', ')}.`,
    );
  const lone = chosen.find((one) => againstRows.includes(one));
  if (lone !== undefined && against === undefined)
    throw new UsageError(`--row ${lone}: name the other checkout with --against.`);
  return chosen;
}

function minutesOf(name: string, { hasMinutes }: Suite, given: string): number {
  if (!hasMinutes) throw new UsageError(`--minutes: no row of ${name} takes as long as it is told.`);
  const minutes = Number(given);
  if (!Number.isInteger(minutes) || minutes < LEAST_MINUTES)
    throw new UsageError(`--minutes: a whole number from ${LEAST_MINUTES} on, the first and the last.`);
  return minutes;
}

/** As other programs read it: settings and rows stand beside where they come from. */
function flat({ durability, result, ...origin }: Raw<{ rows: AnyRow[]; demands: Demand[] }>) {
  return { ...origin, settings: durability, ...result };
}

process.exitCode = await main(process.argv.slice(2)).catch(reportFailure);
