// Which of the processes of one command this is, and what it may have of what they share.

import type { Member } from './member.ts';

export interface Part {
  /** From 0. */
  readonly index: number;
  /** How many processes the command has. */
  readonly of: number;
}

/** A command with one process. */
export const WHOLE: Part = { index: 0, of: 1 };

/** More than a large machine has cores: beyond that each process only adds connections. */
export const MAX_PROCESSES = 64;

/** A look costs about a millisecond. */
const OTHERS_IDLE_MS = 2_000;

/** What a supervisor tells a process that it starts: "2/4" is the second of four. */
export const PART_VARIABLE = 'SLUICE_PROCESS';

/**
 * What this process may have of a limit that holds for all of them: the shares add up to the limit. Each process has at least one,
 * or it could do nothing: with more processes than the limit, the limit is their number.
 */
export function shareOf(limit: number, { index, of }: Part): number {
  return Math.max(1, Math.floor(limit / of) + (index < limit % of ? 1 : 0));
}

/** One process does what has to be done once, such as sampling: the others would only find it done. */
export function doesChores({ index }: Part): boolean {
  return index === 0;
}

/**
 * How long the worker at place `at` of a process rests where it finds nothing. The first of the first process looks four times a second,
 * as a worker does that is told nothing here; the others have notices too, and this for what becomes due without one.
 */
export function restOf(part: Part, at = 0): { readonly idleMs?: number } {
  return at === 0 && doesChores(part) ? {} : { idleMs: OTHERS_IDLE_MS };
}

export function textOfPart({ index, of }: Part): string {
  return `${index + 1}/${of}`;
}

/** Undefined where the text is not one of `textOfPart`. */
export function readPart(text: string | undefined): Part | undefined {
  const [, number, of] = /^(\d{1,2})\/(\d{1,2})$/.exec(text ?? '') ?? [];
  return number === undefined ? undefined : { index: Number(number) - 1, of: Number(of) };
}

/** Undefined where no supervisor started this process: then neither node:cluster nor the rest of this folder is loaded. */
export async function join(): Promise<Member | undefined> {
  const part = process.send === undefined ? undefined : readPart(process.env[PART_VARIABLE]);
  if (part === undefined) return undefined;
  const { Member } = await import('./member.ts');
  return new Member(part);
}
