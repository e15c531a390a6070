// `npm run bench -- <suite>`: runs a suite on databases of its own and shows, and keeps, what came out.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { StackError } from '../src/failure.ts';
import { bridge } from './bridge.ts';
import { calls } from './calls.ts';
import { claims } from './claims.ts';
import { consoleSuite } from './console.ts';
import { commit, machine } from './machine.ts';
import type { Demand, Suite } from './suite.ts';
import { webhooks } from './webhooks.ts';

const SUITES: Record<string, Suite> = { claims, bridge, webhooks, calls, console: consoleSuite };
const RESULTS = fileURLToPath(new URL('./results/', import.meta.url));

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

const usage = `npm run bench -- <suite> [--json file] [--quick]

Suites:
${Object.entries(SUITES)
  .map(([name, { summary }]) => `  ${name.padEnd(9)} ${summary}`)
  .join('\n')}

  --json file   also writes the result there, for machines
  --quick       everything once, small and within a minute: shows that it runs, proves nothing about speed

A run without --quick is also kept in bench/results/.

Example:
  npm run bench -- claims --json claims.json`;

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      json: { type: 'string' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const [name, ...rest] = positionals;
  const suite = name !== undefined && Object.hasOwn(SUITES, name) ? SUITES[name] : undefined;
  if (name === undefined || suite === undefined || rest.length > 0) {
    const wrong = name === undefined ? 'Which suite?' : `There is no suite ${positionals.join(' ')}.`;
    console.error(`${wrong} Suites: ${Object.keys(SUITES).join(', ')}.\nhint: --help tells more`);
    return EXIT_USAGE;
  }
  const at = new Date().toISOString();
  const { settings, rows, demands, table } = await suite.run({
    quick: values.quick,
    progress: (line) => process.stderr.write(`${line}\n`),
  });
  const heading = values.quick ? 'must show (a quick run proves none of it)' : 'must show';
  console.log(`\n${table}\n\n${heading}\n${demands.map(demandLine).join('\n')}`);
  const command = ['npm run bench --', ...args].join(' ');
  const result = { suite: name, commit: commit(), at, command, machine: machine(), settings, rows, demands };
  const json = `${JSON.stringify(result, null, 2)}\n`;
  if (values.json !== undefined) writeFileSync(resolve(values.json), json);
  if (!values.quick) {
    mkdirSync(RESULTS, { recursive: true });
    const file = `${at.slice(0, 16).replace(':', '')}-${name}.json`;
    writeFileSync(join(RESULTS, file), json);
    console.log(`\nkept as bench/results/${file}`);
  }
  return 0;
}

function demandLine({ what, atLeast, value, friendlier }: Demand): string {
  const verdict = value === undefined ? 'not measured' : value >= atLeast ? 'ok' : 'NOT MET';
  const seen = value === undefined ? '' : `${value.toFixed(2)} `;
  const beside = friendlier === undefined ? '' : `, ${friendlier.toFixed(2)} with the index forced`;
  return `  ${verdict.padEnd(12)} ${what}: ${seen}(at least ${atLeast})${beside}`;
}

/** What a person can mend is told in two lines; everything else shows where it happened. */
function report(error: unknown): number {
  if (error instanceof StackError) {
    console.error(`error: ${error.message}\nhint: ${error.hint}`);
    return EXIT_FAILED;
  }
  if (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')) {
    console.error(`${error.message}\nhint: --help tells more`);
    return EXIT_USAGE;
  }
  console.error(error);
  return EXIT_FAILED;
}

process.exitCode = await main(process.argv.slice(2)).catch(report);
