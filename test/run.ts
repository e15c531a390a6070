/** `npm test`: the whole check, the same for a person and for CI. `npm test -- --help` says how to run a part. */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { pgtapOnDebian, pgtapOnEmbedded } from './pgtap/stages.ts';
import { stopCommands } from './run/command.ts';
import { nodeTests } from './run/node_stage.ts';
import { describe, failedOne, lastLine, type Outcome, strict, sum } from './run/outcome.ts';
import type { Stage, StageContext } from './run/stage.ts';
import { lint, tidy, types } from './run/static_stages.ts';
import { createWorkspace, type Workspace } from './run/workspace.ts';

/** The quick ones first: a typing slip should not cost the time of the databases. */
const STAGES: readonly Stage[] = [lint, types, tidy, nodeTests, pgtapOnEmbedded, pgtapOnDebian];

const USAGE = `npm test                        everything
npm test -- --only <stage>      one stage: ${STAGES.map((stage) => stage.name).join(', ')}
npm test -- <file…>             the node tests in these files`;

const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { only: { type: 'string' }, help: { type: 'boolean' } },
  });
  const wanted = positionals.length > 0 ? nodeTests.name : values.only;
  const stages = wanted === undefined ? STAGES : STAGES.filter((stage) => stage.name === wanted);
  if (values.help === true || stages.length === 0) {
    console.log(USAGE);
    return values.help === true ? 0 : EXIT_USAGE;
  }
  const workspace = createWorkspace();
  const interruption = onInterrupt(workspace);
  try {
    const outcome = await runStages(stages, interruption, {
      root: fileURLToPath(new URL('..', import.meta.url)),
      workspace,
      files: positionals,
      print: (line) => console.log(line),
    });
    if (interruption.aborted) return EXIT_INTERRUPTED;
    return report(process.env.CI === 'true' ? strict(outcome) : outcome);
  } finally {
    await workspace.endLeftovers();
    workspace.remove();
  }
}

async function runStages(
  stages: readonly Stage[],
  interruption: AbortSignal,
  context: StageContext,
): Promise<Outcome> {
  const outcomes: Outcome[] = [];
  for (const stage of stages) {
    if (interruption.aborted) break;
    context.print(`${stage.name} …`);
    const startedAt = performance.now();
    const outcome = await stage
      .run(context)
      .catch((error: unknown) =>
        failedOne(stage.name, error instanceof Error ? (error.stack ?? '') : String(error)),
      );
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    context.print(`${stage.name}: ${lastLine(outcome)} (${seconds} s)`);
    outcomes.push(outcome);
  }
  return sum(outcomes);
}

function report(outcome: Outcome): number {
  if (outcome.skips.length > 0) console.log(describe(outcome.skips, 'SKIPPED'));
  if (outcome.failures.length > 0) console.log(describe(outcome.failures, 'FAILED'));
  console.log(`\n${lastLine(outcome)}`);
  return outcome.failures.length === 0 ? 0 : 1;
}

/** Ctrl-C ends what the current stage has started; the stage then ends by itself, and the run cleans up. */
function onInterrupt(workspace: Workspace): AbortSignal {
  const interruption = new AbortController();
  const onSignal = async (signal: NodeJS.Signals): Promise<void> => {
    if (interruption.signal.aborted) return;
    interruption.abort();
    await stopCommands(signal);
    await workspace.endLeftovers();
  };
  // Not `once`: those who clean up after themselves send the signal again, and it must not end us half-way.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal);
  return interruption.signal;
}
