// What a try that ended in an error means for its event, and the text of that error. SQL handlers have the same table in
// webhook.verdict, but for a login that is refused, which they cannot meet.

import { codeOf, isOutage } from '../errors.ts';
import type { FinishOutcome } from './ports.ts';

const VERDICTS: ReadonlyMap<string, FinishOutcome> = new Map<string, FinishOutcome>([
  // PermanentError and TryLater in TypeScript.
  ['SL030', 'dead_letter'],
  ['SL034', 'later'],
  // Deadlock, serialisation failure, lock timeout: two got in each other's way, which says nothing about the event.
  ['40P01', 'again'],
  ['40001', 'again'],
  ['55P03', 'again'],
]);

/** A half of a pair without its other half: Unicode, but no UTF-8. */
const LONE_SURROGATE = /\p{Cs}/gu;

export function verdictOf(error: unknown): FinishOutcome {
  return isOutage(error) ? 'outage' : (VERDICTS.get(codeOf(error)) ?? 'failed');
}

export function textOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  try {
    return String(error);
  } catch {
    return 'something that is no text was thrown';
  }
}

/** As the database can hold it: Postgres has no NUL in a text. */
export function storable(text: string): string {
  return text.replaceAll('\0', '').replace(LONE_SURROGATE, '\uFFFD');
}
