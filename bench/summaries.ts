// Where the output of a run goes. Raw results go to results/, which git ignores. Of each suite git keeps at most one summary,
// of runs during which the product files stayed the same.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { StackError } from '../src/failure.ts';
import { PROJECT_ROOT } from '../src/project_root.ts';
import { dateOf } from './origin.ts';
import { commit, machine, productHash, UNKNOWN } from './provenance.ts';

export type Origin = {
  suite: string;
  at: string;
  commit: string;
  product_hash: string;
  command: string;
  machine: Record<string, string | number>;
  /** The settings of Postgres that durability hangs on, as the server had them. */
  durability: Record<string, string>;
};
export type Raw<Result = object> = Origin & { product_hash_at_end: string; result: Result };
/** `note` says what the numbers cannot say about the run. */
export type Summary<Result = object> = Origin & { note?: string; result: Result };

/** The folder that keeps a suite's summary. */
export type Keeper = 'bench' | 'chaos';

/** Enough for the longest table: all neighbours beside those of another checkout. */
export const MAX_SUMMARY_BYTES = 30_000;
const DIGITS = 5;
/** Between the commands of a summary that several runs made. */
const AND = ' && ';

/** Call it before anything of the product runs, and `end` when nothing of it runs any more. */
export function beginRun(suite: string, command: string, root = PROJECT_ROOT) {
  const before = {
    suite,
    at: new Date().toISOString(),
    commit: commit(root),
    product_hash: productHash(root),
  };
  return {
    ...before,
    end<Result extends object>(durability: Record<string, string>, result: Result): Raw<Result> {
      const product_hash_at_end = productHash(root);
      return { ...before, command, machine: machine(), durability, product_hash_at_end, result };
    },
  };
}

/** Returns the file's name, from the root. */
export function writeRaw(folder: string, raw: Raw, name: string, root = PROJECT_ROOT): string {
  const file = join('results', folder, `${raw.at.slice(0, 16).replace(':', '')}-${name}.json`);
  return write(root, file, `${JSON.stringify(raw, null, 1)}\n`);
}

/** All raw results of a suite, the oldest first. */
export function readRaw<Result>(folder: string, suite: string, root = PROJECT_ROOT): Raw<Result>[] {
  return readFolder<Raw<Result>>(join(root, 'results', folder)).filter((raw) => raw.suite === suite);
}

export function readSummaries(keeper: Keeper, root = PROJECT_ROOT): Summary[] {
  return readFolder(join(root, keeper, 'summaries'));
}

/** Replaces the suite's summary and returns its file's name, from the root. */
export function keepSummary(
  keeper: Keeper,
  raw: Raw,
  result: object,
  root = PROJECT_ROOT,
  note?: string,
): string {
  const { product_hash_at_end, result: _, ...origin } = raw;
  if (raw.product_hash === UNKNOWN)
    throw new StackError(`git does not say which files ${raw.suite} ran on`, 'keep summaries in a clone');
  if (product_hash_at_end !== raw.product_hash)
    throw new StackError(
      `the product files changed while ${raw.suite} ran, so its numbers belong to no version`,
      'run it again and change nothing meanwhile; the raw result is in results/',
    );
  const text = summaryText({
    ...origin,
    command: portable(origin.command),
    ...(note !== undefined && { note }),
    result,
  });
  const bytes = Buffer.byteLength(text);
  if (bytes >= MAX_SUMMARY_BYTES)
    throw new StackError(
      `the summary of ${raw.suite} has ${bytes} bytes, not less than ${MAX_SUMMARY_BYTES}`,
      'leave out what no document quotes; the raw result is in results/',
    );
  return write(root, join(keeper, 'summaries', `${raw.suite}.json`), text);
}

/**
 * Joins the result of a run to the kept one of the same product files, machine and settings, and returns the file's name: a proof
 * that takes hours is made in several runs. A summary of other product files makes room. `joined` refuses what is kept already.
 */
export function keepJoined<Result extends object>(
  keeper: Keeper,
  raw: Raw<Result>,
  joined: (kept: Result, added: Result) => Result,
  root = PROJECT_ROOT,
): string {
  const kept = keptOf<Result>(keeper, raw, root);
  if (kept === undefined) return keepSummary(keeper, raw, raw.result, root);
  const refuse = (what: string): never => {
    throw new StackError(`the kept numbers of ${raw.suite} ${what}`, 'measure all of them here again');
  };
  if (hardwareOf(kept) !== hardwareOf(raw)) refuse('are of another machine');
  if (!isDeepStrictEqual(kept.durability, raw.durability)) refuse('have other settings');
  // Each run leaves its command, also one whose numbers were measured again.
  const command = [kept.command, portable(raw.command)].join(AND);
  const note = kept.note ?? `Numbers of several runs: the first was on ${dateOf(kept)}, this was the last.`;
  return keepSummary(keeper, { ...raw, command }, joined(kept.result, raw.result), root, note);
}

/** The kept summary of the suite, where it is of the same product files. */
export function keptOf<Result = object>(
  keeper: Keeper,
  { suite, product_hash }: Pick<Origin, 'suite' | 'product_hash'>,
  root = PROJECT_ROOT,
): Summary<Result> | undefined {
  const kept = readSummaries(keeper, root).find((one) => one.suite === suite);
  return kept?.product_hash === product_hash ? (kept as Summary<Result>) : undefined;
}

/** The same seed twice would count the same twice. */
export function refuseKept(kept: readonly number[], ...seeds: readonly number[]): void {
  const known = seeds.find((seed) => kept.includes(seed));
  if (known !== undefined)
    throw new StackError(
      `a run with seed ${known} of these product files is kept already`,
      'choose another --seed, or leave out --keep',
    );
}

/** What a page says of the machine: two of a kind, with another kernel each, count as one. */
const hardwareOf = ({ machine: { cpu, cores, memory_gib, node } }: Pick<Origin, 'machine'>): string =>
  [cpu, cores, memory_gib, node].join();

/** A folder of this machine says nothing elsewhere: another checkout is known by its name. */
export const portable = (command: string): string =>
  command.replace(/ --json \S+/, '').replace(/(--against )\S*\/([^/\s]+)\/?/, '$1../$2');

export function summaryText(summary: Summary): string {
  return `${linesOf(summary, '')}\n`;
}

/** JSON with a line for each record: changes of a run show as changed rows. */
function linesOf(value: unknown, indent: string): string {
  const parts =
    typeof value === 'object' && value !== null
      ? Object.entries(value).filter(([, part]) => part !== undefined)
      : [];
  const isPlain = parts.every(([, part]) => typeof part !== 'object' || part === null);
  if (isPlain) return JSON.stringify(value, shorter);
  const inner = `${indent} `;
  const isList = Array.isArray(value);
  const lines = parts.map(
    ([name, part]) => `${inner}${isList ? '' : `${JSON.stringify(name)}: `}${linesOf(part, inner)}`,
  );
  const [open, close] = isList ? '[]' : '{}';
  return `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}

function shorter(_name: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(DIGITS)) : value;
}

function readFolder<Content>(folder: string): Content[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')));
}

function write(root: string, file: string, text: string): string {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
  return file;
}
