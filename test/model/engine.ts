// Runs many histories. They come in blocks of their own seed, which lanes take as they get free: so a run does the same
// with one lane or with ten, and a violation can be had again from its block's seed alone.

import fc, { type IAsyncProperty } from 'fast-check';
import { compare } from '../../tools/machines/machine.ts';
import { MACHINES } from '../../tools/machines.ts';
import { takenSteps } from '../machines/recorder.ts';
import type { Lane } from './lanes.ts';
import { Violation } from './violation.ts';

/** Runs one history and answers how many commands it had. */
export type Watch = (history: () => Promise<number>) => Promise<void>;

/** One lane set up for one of the models. */
export type Bench = {
  /** What the history that runs now has done so far. */
  record(): readonly string[];
  property(watch: Watch): IAsyncProperty<unknown>;
};

export type Subject = { name: string; open(lane: Lane): Bench };

export type Found = {
  model: string;
  seed: number;
  /** Where the shrunk history stands in fast-check's tree: with the seed, it is all that a replay needs. */
  path: string;
  /** How many histories of the block it took. */
  histories: number;
  promise: string;
  violation: string;
  history: readonly string[];
};

export type Tally = {
  histories: number;
  commands: number;
  longest: number;
  /** How often each word was an answer: what a run never got to, it has not tested. */
  answers: Record<string, number>;
  violations: Found[];
  /** Steps of claims and events that are not on their lists. */
  unknownSteps: string[];
};

export const BLOCK_HISTORIES = 250;
/** Enough to see whether they have one cause; more would only shrink for hours. */
const VIOLATIONS_MAX = 3;

export type Block = { subject: Subject; seed: number; histories: number; isShrunk?: boolean };

/** Blocks of each subject, with the seeds that follow the first. */
export function blocksOf(subjects: readonly Subject[], seed: number, histories: number): Block[] {
  const count = Math.ceil(histories / BLOCK_HISTORIES);
  return Array.from({ length: count }, (_, at) =>
    subjects.map((subject) => ({
      subject,
      seed: seed + at,
      histories: Math.min(BLOCK_HISTORIES, histories - at * BLOCK_HISTORIES),
    })),
  ).flat();
}

export const emptyTally = (): Tally => ({
  histories: 0,
  commands: 0,
  longest: 0,
  answers: {},
  violations: [],
  unknownSteps: [],
});

/** `keep` is told of each block when it is over. It begins with what an earlier run had. */
export async function runBlocks(
  lanes: readonly Lane[],
  blocks: readonly Block[],
  advance: () => void,
  { keep, earlier = emptyTally() }: { keep?: (block: Block, tally: Tally) => void; earlier?: Tally } = {},
): Promise<Tally> {
  let all = earlier;
  const waiting = [...blocks];
  await Promise.all(
    lanes.map(async (lane) => {
      while (all.violations.length < VIOLATIONS_MAX) {
        const block = waiting.shift();
        if (block === undefined) return;
        const tally = emptyTally();
        const found = await runBlock(lane, block, tally, advance);
        if (found !== undefined) tally.violations.push(found);
        tally.unknownSteps = await findUnknownSteps(lane);
        keep?.(block, tally);
        all = added(all, tally);
      }
    }),
  );
  return all;
}

export function added(one: Tally, other: Tally): Tally {
  const answers = { ...one.answers };
  for (const [word, times] of Object.entries(other.answers)) answers[word] = (answers[word] ?? 0) + times;
  return {
    histories: one.histories + other.histories,
    commands: one.commands + other.commands,
    longest: Math.max(one.longest, other.longest),
    answers,
    violations: [...one.violations, ...other.violations],
    unknownSteps: [...new Set([...one.unknownSteps, ...other.unknownSteps])].sort(),
  };
}

async function findUnknownSteps(lane: Lane): Promise<string[]> {
  const found: string[] = [];
  for (const machine of MACHINES)
    for (const step of compare(machine, await takenSteps(lane[machine.side].rows)).unknown)
      found.push(`${machine.table}: ${step}`);
  return found;
}

async function runBlock(
  lane: Lane,
  { subject, seed, histories, isShrunk = true }: Block,
  tally: Tally,
  advance: () => void,
): Promise<Found | undefined> {
  const bench = subject.open(lane);
  let hasFailed = false;
  const property = bench.property(async (history) => {
    try {
      const commands = await history();
      // After the first failure fast-check shrinks, and those are no histories of their own.
      if (hasFailed) return;
      tally.histories++;
      tally.commands += commands;
      tally.longest = Math.max(tally.longest, commands);
      countAnswers(bench.record(), tally.answers);
      advance();
    } catch (error) {
      hasFailed = true;
      throw asViolation(error, bench.record());
    }
  });
  const details = await fc.check(property, { seed, numRuns: histories, endOnFailure: !isShrunk });
  if (!details.failed) return undefined;
  const violation = details.errorInstance;
  if (!(violation instanceof Violation))
    throw new Error(`no history could be made: ${fc.defaultReportMessage(details)}`);
  return {
    model: subject.name,
    seed,
    path: details.counterexamplePath ?? '',
    histories: details.numRuns,
    promise: violation.promise,
    violation: violation.message,
    history: violation.history,
  };
}

function countAnswers(history: readonly string[], answers: Record<string, number>): void {
  for (const line of history)
    for (const word of (line.split(' → ')[1] ?? '').split(/[ ,]+/))
      if (/^(SL\d{3}|[a-z_]{4,})$/.test(word)) answers[word] = (answers[word] ?? 0) + 1;
}

/** An error that the model did not expect is a violation like any other, with the history that led to it. */
function asViolation(error: unknown, history: readonly string[]): Violation {
  const violation = error instanceof Violation ? error : new Violation('model', `it raised ${String(error)}`);
  violation.history = [...history];
  if (violation !== error && error instanceof Error) violation.stack = error.stack ?? '';
  return violation;
}
