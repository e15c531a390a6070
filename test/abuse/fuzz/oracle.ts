// What may never come back, whatever was sent. Pure.

import { leaks, shapeOf } from '../judge.ts';
import type { FuzzCase } from './case.ts';
import type { Exchange } from './wire.ts';

/** What a door can say while its databases are up. */
const KNOWN: ReadonlySet<number> = new Set([
  200, 201, 204, 304, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 431, 503,
]);
/** Of 503 only what asks for patience: nothing was down. */
const PATIENCE: ReadonlySet<string> = new Set(['busy', 'overloaded']);

export function complaintsOf(
  fuzz: FuzzCase,
  { answers, rest, isHung }: Exchange,
  hidden: readonly string[],
): string[] {
  const found: string[] = [];
  if (isHung) found.push('was left without an end');
  if (rest !== '') found.push(`came back in pieces: ${JSON.stringify(rest.slice(0, 100))}`);
  for (const [nth, answer] of answers.entries()) {
    const { status, json } = answer;
    if (!KNOWN.has(status)) found.push(`answered ${status}: ${answer.text.slice(0, 200)}`);
    if (status === 503 && !PATIENCE.has(json?.error?.code)) found.push(`answered 503 ${json?.error?.code}`);
    if (hidden.some((secret) => answer.text.includes(secret))) found.push('holds a secret');
    if (status < 400 || fuzz.methods[nth] === 'HEAD') continue;
    // What a refusal echoes of the request is the sender's own; its inside it never is.
    found.push(...shapeOf(answer), ...leaks(answer, hidden).filter((text) => !text.includes('__proto__')));
  }
  const isClosed = answers.at(-1)?.headers.connection === 'close';
  if (fuzz.isFramed && answers.length < fuzz.methods.length && !isClosed && !isHung)
    found.push(`gave ${answers.length} answers to ${fuzz.methods.length} requests`);
  if (fuzz.isFramed && answers.length > fuzz.methods.length)
    found.push(`gave ${answers.length} answers to ${fuzz.methods.length} requests`);
  return found;
}
