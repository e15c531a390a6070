// `npm run fuzz`: requests that no sane client sends, at every door of a real `sluice serve` on databases of its own.

import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { EXIT_FAILED, reportFailure, UsageError } from '../../bench/command.ts';
import { readSettings } from '../../bench/durability.ts';
import { beginRun, keepJoined, keptOf, refuseKept, writeRaw } from '../../bench/summaries.ts';
import { writeReport } from '../../chaos/report.ts';
import { startProgress } from '../../src/commands/progress.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { chooseSeed } from '../support/load.ts';
import { type FuzzRuns, joinRuns, runsOf } from './fuzz/join.ts';
import { type FuzzReport, fuzz, fuzzOne } from './fuzz/run.ts';
import { startNodePlace } from './node_place.ts';

const DEFAULT_REQUESTS = 10_000;
const SHOWN_FAILURES = 10;

const usage = `npm run fuzz -- [--requests N] [--seed S] [--only I] [--json file] [--keep]

Starts "sluice serve" on two databases of its own and sends it good requests with things wrong in them. It fails where an
answer is a 500, has another shape than all refusals, or gives away what is inside; where the process ends, its log tells of
a failure, its memory grows, or the databases contradict themselves.

  --requests N   how many connections (default ${DEFAULT_REQUESTS})
  --seed S       runs the cases of an earlier run again; one is chosen where left out
  --only I       sends case I of the seed alone, and shows what went over the wire
  --json file    also writes the result there, for machines
  --keep         also writes chaos/summaries/fuzz.json, which git keeps, and docs/reliability.md from it; adds to what is kept
                 of other seeds and the same product files; refuses where these changed meanwhile

The raw result goes to results/fuzz/, which git ignores.

Example:
  npm run fuzz -- --requests 100000 --seed 7`;

function whole(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} is "${text}"; it must be a whole number.`);
  return Number(text);
}

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      requests: { type: 'string' },
      seed: { type: 'string' },
      only: { type: 'string' },
      json: { type: 'string' },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const seed = whole('seed', values.seed) ?? chooseSeed();
  const only = whole('only', values.only);
  const requests = whole('requests', values.requests) ?? DEFAULT_REQUESTS;
  if (requests === 0) throw new UsageError('--requests is 0; send at least one.');
  const run = beginRun('fuzz', ['npm run fuzz --', ...args].join(' '));
  if (values.keep) refuseKept(keptOf<FuzzRuns>('chaos', run)?.result.seeds ?? [], seed);
  const place = await startNodePlace();
  if (only !== undefined) return showOne(place, seed, only).finally(place.stop);
  const progress = startProgress(requests, 'requests');
  const fuzzed = await fuzz(place, { seed, requests, onProgress: progress.advance }).catch(async (error) => {
    await place.stop();
    throw error;
  });
  progress.end();
  const settings = await withClient(place.databaseUrls()[0], readSettings);
  const report = withEnd(fuzzed, await place.stop());
  show(report);
  const raw = run.end(settings, report);
  if (values.json !== undefined) writeFileSync(resolve(values.json), `${JSON.stringify(raw, null, 2)}\n`);
  console.log(`raw result: ${writeRaw('fuzz', raw, `seed-${seed}`)}`);
  if (values.keep) {
    const kept = keepJoined('chaos', { ...raw, result: runsOf(report) }, joinRuns);
    console.log(`summary: ${kept}, ${writeReport()}`);
  }
  return report.failures.length === 0 ? 0 : EXIT_FAILED;
}

/** Whatever it went through, the server ends when it is told to. */
function withEnd(report: FuzzReport, code: number | null): FuzzReport {
  if (code === 0) return report;
  const end = { what: 'the end', complaints: [`it ended with ${code ?? 'SIGKILL'}`] };
  return { ...report, failures: [...report.failures, end] };
}

async function showOne(place: Parameters<typeof fuzzOne>[0], seed: number, index: number): Promise<number> {
  const { asked, got, complaints } = await fuzzOne(place, seed, index);
  console.log(`seed ${seed}, case ${index}: ${asked.what}\n`);
  for (const piece of asked.pieces) console.log(`> ${JSON.stringify(piece.toString('latin1'))}`);
  for (const { status, headers, text } of got.answers)
    console.log(`< ${status} ${JSON.stringify(headers)} ${text}`);
  console.log(complaints.length === 0 ? '\nnothing is wrong with it' : `\n${complaints.join('\n')}`);
  return complaints.length === 0 ? 0 : EXIT_FAILED;
}

function show({ seed, requests, statuses, seconds, rss_mb, failures }: FuzzReport): void {
  const rows = Object.entries(statuses).map(([status, count]) => `  ${status.padEnd(7)}${count}`);
  console.log(
    `seed ${seed}: ${requests} requests in ${seconds.toFixed(1)} s, ${Math.round(requests / seconds)}/s`,
  );
  console.log(`memory: ${rss_mb.warm.toFixed(0)} MB warm, ${rss_mb.end.toFixed(0)} MB at the end`);
  console.log(rows.join('\n'));
  for (const { index, what, complaints } of failures.slice(0, SHOWN_FAILURES)) {
    console.log(
      `\nFAILED ${index === undefined ? '' : `case ${index}, `}${what}\n  ${complaints.join('\n  ')}`,
    );
    if (index !== undefined) console.log(`  again: npm run fuzz -- --seed ${seed} --only ${index}`);
  }
  console.log(failures.length === 0 ? '\nok' : `\n${failures.length} failures`);
}

process.exitCode = await main(process.argv.slice(2)).catch(reportFailure);
