// What a cell's failures mean to a fleet.

import { inTime } from '#core/deadline.ts';
import { HttpError } from '#core/errors.ts';
import { isUnavailable, toHttpError } from '#core/failure.ts';

/** A cell that does not answer for so long has missed the question. */
const ANSWER_MS = 2_000;

export function answerOf<Answer>(cell: { readonly name: string }, asked: Promise<Answer>): Promise<Answer> {
  return inTime(ANSWER_MS, asked, () => cellAway([cell.name]));
}

export function isUnknownPool(error: unknown): boolean {
  return toHttpError(error).kind.code === 'unknown_pool';
}

export function isNotUnknownClaim(error: unknown): boolean {
  return toHttpError(error).kind.code !== 'unknown_claim';
}

export function isAway(error: unknown): boolean {
  return isUnavailable(error) || isLate(error);
}

export function isLate(error: unknown): boolean {
  return error instanceof HttpError && error.kind.code === 'cell_unavailable';
}

export function cellAway(names: readonly string[]): HttpError {
  return new HttpError(
    'cell_unavailable',
    `Cell ${names.join(', ')} does not answer; its pools wait for it.`,
  );
}

export function strangerText(wanted: string, name: string): string {
  return name === ''
    ? `the database of cell ${wanted} belongs to no fleet: run \`sluice cells add ${wanted}\``
    : `the database of cell ${wanted} is cell ${name}: compare SLUICE_CELLS`;
}
