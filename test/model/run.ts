// `npm run model`: many histories of commands against the real databases, each answer compared with a model in memory.

import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { EXIT_FAILED, reportFailure, UsageError } from '../../bench/command.ts';
import { beginRun, keepJoined, keptOf, refuseKept, writeRaw } from '../../bench/summaries.ts';
import { writeReport } from '../../chaos/report.ts';
import { progressLine, startProgress } from '../../src/commands/progress.ts';
import { BlockBook } from './block_book.ts';
import { CONTROLS, type ControlResult, runControl } from './controls.ts';
import { blocksOf, type Found, runBlocks, type Tally } from './engine.ts';
import { joinRuns, type ModelResult, summaryOf } from './join.ts';
import { type Lanes, startLanes } from './lanes.ts';
import { SUBJECTS } from './subjects.ts';

const DEFAULT_HISTORIES = 1_000;
/** fast-check takes 32 bits; the blocks of a long run count up from the seed. */
const SEED_MAX = 2 ** 31 - 1_000_000;
/** While one lane waits for its server, another one thinks. More than this only wait for each other on two cores. */
const LANES = 3;
const LANES_MAX = 32;
/** Without a terminal, a line this often says that the run goes on. */
const LINE_EVERY_MS = 60_000;
const MS_PER_SEC = 1_000;

const usage = `npm run model -- [--histories N] [--seed S [--resume]] [--model name] [--control name] [--json file] [--keep]

Runs N histories of commands, a third of them claims, a third provider events and a third paid orders, against real databases, and
compares every answer and the state at the end with a model in memory; of paid orders it holds the promises against what is
there after every call. Then switches guards off, one at a time, to see that the
histories notice. Any violation is shrunk to the shortest history that still has it.

  --histories N    how many (default ${DEFAULT_HISTORIES}; 20000 took 28 minutes on two cores that others used as well)
  --seed S         makes the run the same again (default: at random, and printed)
  --resume         goes on after a run with this seed that was interrupted: what it finished counts. Refuses where the product
                   files have changed since
  --model name     only ${SUBJECTS.map(({ name }) => name).join(' or ')}
  --control name   no histories, only this control, or all of them:
${Object.entries(CONTROLS)
  .map(([name, { summary }]) => `                     ${name.padEnd(18)} ${summary}`)
  .join('\n')}
  --no-controls    histories only
  --lanes N        databases that run side by side (default ${LANES}); changes nothing but the time
  --json file      also writes the result there, for machines
  --keep           also writes chaos/summaries/model.json, which git keeps, and docs/reliability.md from it; adds to what is
                   kept of other seeds and the same product files; refuses where these changed meanwhile

The raw result goes to results/model/, which git ignores.

Exit code: 0 when no promise was broken and every control was noticed, 1 otherwise, 2 when the call was not understood.

Examples:
  npm run model -- --histories 20000 --json model.json
  npm run model -- --histories 60000 --seed 21 --resume
  npm run model -- --seed 7 --histories 250 --model claims
  npm run model -- --control fence-off`;

type Wanted = {
  histories: number;
  lanes: number;
  seed: number;
  subjects: typeof SUBJECTS;
  controls: string[];
  json: string | undefined;
  keep: boolean;
  resume: boolean;
};

function read(args: string[]): Wanted | undefined {
  const { values } = parseArgs({
    args,
    allowNegative: true,
    options: {
      histories: { type: 'string' },
      seed: { type: 'string' },
      model: { type: 'string' },
      control: { type: 'string' },
      lanes: { type: 'string', default: String(LANES) },
      controls: { type: 'boolean', default: true },
      json: { type: 'string' },
      keep: { type: 'boolean', default: false },
      resume: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const { control, model } = values;
  if (control !== undefined && control !== 'all' && !Object.hasOwn(CONTROLS, control))
    throw new UsageError(`unknown control ${control}; known are ${Object.keys(CONTROLS).join(', ')}`);
  if (values.resume && values.seed === undefined)
    throw new UsageError('--resume needs the --seed of the run that it goes on with');
  const subjects = SUBJECTS.filter(({ name }) => model === undefined || name === model);
  if (subjects.length === 0) throw new UsageError(`unknown model ${model}`);
  const all = Object.keys(CONTROLS).filter(
    (name) => control === undefined || control === 'all' || name === control,
  );
  const lanes = wholeNumber('--lanes', values.lanes);
  if (lanes < 1 || lanes > LANES_MAX) throw new UsageError(`--lanes is 1 to ${LANES_MAX}`);
  return {
    lanes,
    histories:
      control === undefined ? wholeNumber('--histories', values.histories ?? String(DEFAULT_HISTORIES)) : 0,
    seed: values.seed === undefined ? randomInt(SEED_MAX) : wholeNumber('--seed', values.seed),
    subjects,
    controls: values.controls ? all : [],
    json: values.json,
    keep: values.keep,
    resume: values.resume,
  };
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number > SEED_MAX)
    throw new UsageError(`${name} is a whole number up to ${SEED_MAX}, not "${text}"`);
  return number;
}

async function runHistories(
  databases: Lanes,
  { subjects, seed, histories, lanes, resume }: Wanted,
): Promise<Tally> {
  const each = Math.ceil(histories / subjects.length);
  const total = each * subjects.length;
  const book = BlockBook.open(seed, resume);
  const all = blocksOf(subjects, seed, each);
  const blocks = all.filter((block) => !book.has(block));
  const earlier = book.tallyOf(all);
  if (resume) console.log(`${earlier.histories} histories were finished before`);
  const open = await Promise.all(
    Array.from({ length: Math.min(lanes, blocks.length) }, () => databases.open()),
  );
  const progress = startProgress(total, 'histories');
  const startedMs = performance.now();
  let done = earlier.histories;
  progress.advance(done);
  const line = setInterval(() => {
    const elapsedSec = (performance.now() - startedMs) / MS_PER_SEC;
    if (!process.stderr.isTTY)
      process.stderr.write(`${progressLine(done, total, 'histories', elapsedSec)}\n`);
  }, LINE_EVERY_MS);
  try {
    const advance = () => {
      done++;
      progress.advance(1);
    };
    return await runBlocks(open, blocks, advance, {
      earlier,
      keep: (block, tally) => book.write(block, tally),
    });
  } finally {
    clearInterval(line);
    progress.end();
  }
}

function showFound({ model, seed, path, promise, violation, history, histories }: Found): void {
  console.log(`\nVIOLATION of ${promise} (${model}, seed ${seed}, path ${path})\n  ${violation}`);
  console.log(history.map((line, at) => `  ${String(at + 1).padStart(2)}. ${line}`).join('\n'));
  console.log(
    `  again: npm run model -- --model ${model} --seed ${seed} --histories ${histories} --no-controls`,
  );
}

function showControl({ name, seed, histories, violation, history, isDirected }: ControlResult): void {
  if (violation === null)
    console.log(`\ncontrol ${name}: NOT noticed in ${histories} histories (seed ${seed})`);
  else {
    const by = isDirected ? `its own history, after ${histories}` : `history ${histories}`;
    console.log(`\ncontrol ${name}: noticed by ${by} (seed ${seed})\n  ${violation}`);
  }
  console.log(history.map((line, at) => `  ${String(at + 1).padStart(2)}. ${line}`).join('\n'));
}

async function main(args: string[]): Promise<number> {
  const wanted = read(args);
  if (wanted === undefined) {
    console.log(usage);
    return 0;
  }
  const { seed } = wanted;
  console.log(`seed ${seed}`);
  const run = beginRun('model', ['npm run model --', ...args].join(' '));
  if (wanted.keep) refuseKept(keptOf<ModelResult>('chaos', run)?.result.seeds ?? [], seed);
  const lanes = await startLanes();
  try {
    const startedMs = performance.now();
    const tally = await runHistories(lanes, wanted);
    const seconds = (performance.now() - startedMs) / MS_PER_SEC;
    for (const found of tally.violations) showFound(found);
    for (const step of tally.unknownSteps) console.log(`\nNOT ON THE LIST (tools/machines): ${step}`);
    const controls: ControlResult[] = [];
    for (const name of wanted.controls) {
      const control = CONTROLS[name];
      if (control === undefined) continue;
      const result = await runControl(lanes, name, control, seed, true);
      controls.push(result);
      showControl(result);
    }
    const noticed = controls.filter(({ violation }) => violation !== null).length;
    const { histories, commands, longest, violations, unknownSteps } = tally;
    console.log(
      `\nmodel: ${histories} histories, ${commands} commands (${(commands / Math.max(1, histories)).toFixed(1)} each, ` +
        `longest ${longest}) in ${seconds.toFixed(0)} s, ${(histories / seconds).toFixed(1)}/s, seed ${seed}: ` +
        `${violations.length} violations; ${noticed} of ${controls.length} controls noticed`,
    );
    const raw = run.end<ModelResult>(await lanes.settings(), { seeds: [seed], ...tally, seconds, controls });
    if (wanted.json !== undefined) writeFileSync(resolve(wanted.json), `${JSON.stringify(raw, null, 2)}\n`);
    console.log(`raw result: ${writeRaw('model', raw, `seed-${seed}`)}`);
    if (wanted.keep) {
      const kept = keepJoined('chaos', { ...raw, result: summaryOf(raw.result) }, joinRuns);
      console.log(`summary: ${kept}, ${writeReport()}`);
    }
    return violations.length + unknownSteps.length === 0 && noticed === controls.length ? 0 : EXIT_FAILED;
  } finally {
    await lanes.stop();
  }
}

process.exitCode = await main(process.argv.slice(2)).catch(reportFailure);
