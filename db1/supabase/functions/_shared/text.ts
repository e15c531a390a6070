// Texts from outside, made fit for a row: what a database, a hook or a handler had to say.

import { codeOf } from './failure.ts';

/** Neither half a character nor a NUL can be stored as text, and one of them would have a whole batch refused. */
const UNSTORABLE = /[\0\ud800-\udfff]/gu;

/** What was thrown, in words. Where a name has several addresses and none answers, the error has a code and no message. */
export function textOf(error: unknown): string {
  if (error instanceof Error) return error.message || codeOf(error);
  try {
    return String(error);
  } catch {
    return 'a value that cannot be turned into text was thrown';
  }
}

/** The text as the database can hold it. */
export function storable(text: string): string {
  return text.replace(UNSTORABLE, '\ufffd');
}

/** At most `maxChars` characters, as the database counts them, and none that it cannot store. */
export function shortened(text: string, maxChars: number): string {
  const start = text.slice(0, 2 * maxChars);
  return storable([...start].slice(0, maxChars).join(''));
}
