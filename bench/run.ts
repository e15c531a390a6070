// `npm run bench -- <suite>`: runs a suite on databases of its own and shows, and keeps, what came out.

import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { backlog } from './backlog.ts';
import { bridge } from './bridge.ts';
import { calls } from './calls.ts';
import { cells } from './cells.ts';
import { claims } from './claims.ts';
import { reportFailure, UsageError } from './command.ts';
import { consoleSuite } from './console.ts';
import { cost } from './cost.ts';
import { holds } from './holds.ts';
import { limits } from './limits.ts';
import { neighbours } from './neighbours.ts';
import { paid } from './paid.ts';
import { quorum } from './quorum.ts';
import { rebuild } from './rebuild.ts';
import { retention } from './retention.ts';
import type { AnyRow, Demand, Suite } from './suite.ts';
import { beginRun, keepSummary, type Raw, writeRaw } from './summaries.ts';
import { webhooks } from './webhooks.ts';
import { whole } from './whole.ts';

const SUITES: Record<string, Suite> = {
  claims,
  bridge,
  webhooks,
  calls,
  console: consoleSuite,
  neighbours,
  backlog,
  holds,
  cost,
  paid,
  limits,
  rebuild,
  cells,
  retention,
  quorum,
  whole,
};

const usage = `npm run bench -- <suite> [--json file] [--keep | --quick] [--against folder]

Suites:
${Object.entries(SUITES)
  .map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`)
  .join('\n')}

  --json file   also writes the result there, for machines
  --keep        also writes bench/summaries/<suite>.json, which git keeps; refuses where the product files changed meanwhile
  --quick       everything once, small and within a minute: shows that it runs, proves nothing about speed
  --against folder  neighbours, cost, paid, rebuild, whole: also measures another checkout, with its packages installed

The raw result of a run without --quick goes to results/bench/, which git ignores.

Example:
  npm run bench -- claims --json claims.json`;

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      json: { type: 'string' },
      keep: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      against: { type: 'string' },
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
    const wrong = name === undefined ? 'Which suite?' : `Unknown suite ${positionals.join(' ')}.`;
    throw new UsageError(`${wrong} Suites: ${Object.keys(SUITES).join(', ')}.`);
  }
  if (values.quick && values.keep)
    throw new UsageError('--keep: a quick run proves nothing about speed, so its numbers are not kept.');
  if (values.against !== undefined && !suite.compares)
    throw new UsageError(`--against: ${name} measures this checkout only.`);
  const run = beginRun(name, ['npm run bench --', ...args].join(' '));
  const { settings, rows, demands, table } = await suite.run({
    quick: values.quick,
    ...(values.against !== undefined && { against: resolve(values.against) }),
    progress: (line) => process.stderr.write(`${line}\n`),
  });
  const heading = values.quick ? 'must show (a quick run proves none of it)' : 'must show';
  console.log(`\n${table}\n\n${heading}\n${demands.map(demandLine).join('\n')}`);
  const raw = run.end(settings, { rows, demands });
  if (values.json !== undefined)
    writeFileSync(resolve(values.json), `${JSON.stringify(flat(raw), null, 2)}\n`);
  if (!values.quick) console.log(`\nraw result: ${writeRaw('bench', raw, name)}`);
  if (values.keep) console.log(`summary: ${keepSummary('bench', raw, raw.result)}`);
  return 0;
}

/** As other programs read it: settings and rows stand beside where they come from. */
function flat({ durability, result, ...origin }: Raw<{ rows: AnyRow[]; demands: Demand[] }>) {
  return { ...origin, settings: durability, ...result };
}

function demandLine({ what, atLeast, value, friendlier }: Demand): string {
  const verdict = value === undefined ? 'not measured' : value >= atLeast ? 'ok' : 'NOT MET';
  const seen = value === undefined ? '' : `${value.toFixed(2)} `;
  const beside = friendlier === undefined ? '' : `, ${friendlier.toFixed(2)} with the index forced`;
  return `  ${verdict.padEnd(12)} ${what}: ${seen}(at least ${atLeast})${beside}`;
}

process.exitCode = await main(process.argv.slice(2)).catch(reportFailure);
