// Numbers that a double would round, such as ids above 2^53. Postgres reads them digit by digit, so they only have to pass
// through JavaScript unharmed: they are marked as texts before JSON.parse, and unmarked after JSON.stringify.

import { isExactNumber } from './json.ts';

/** Made anew in each process, so that a sender cannot write a text that becomes a number. */
const MARK = `number ${crypto.randomUUID()} `;
const MARKED = new RegExp(`"${MARK}([^"]+)"`, 'g');

const NEXT_TOKEN = /["\-0-9]/g;
const NUMBER = /-?[0-9][0-9.eE+-]*/y;
const BACKSLASH = 0x5c;

/** Postgres writes out every zero: a longer one would cost its length at each look at the payload. */
const DIGITS_MAX = 1_000;

/** JSON in which every number that a double would round is a text: the mark and its digits. The text has to be JSON. */
export function markNumbers(text: string, mark = MARK): string {
  let marked = '';
  let copied = 0;
  NEXT_TOKEN.lastIndex = 0;
  for (let token = NEXT_TOKEN.exec(text); token !== null; token = NEXT_TOKEN.exec(text)) {
    if (token[0] === '"') {
      NEXT_TOKEN.lastIndex = endOfString(text, token.index);
      continue;
    }
    NUMBER.lastIndex = token.index;
    const [literal = ''] = NUMBER.exec(text) ?? [];
    NEXT_TOKEN.lastIndex = token.index + literal.length;
    if (isExactNumber(literal)) continue;
    marked += `${text.slice(copied, token.index)}"${mark}${literal}"`;
    copied = NEXT_TOKEN.lastIndex;
  }
  return copied === 0 ? text : marked + text.slice(copied);
}

/** As JSON.parse, for people and handlers: a number that a double would round becomes the text of its digits. */
export function parseWithDigits(text: string): unknown {
  return JSON.parse(MAY_ROUND.test(text) ? markNumbers(text, '') : text);
}

/** The same for jsonb as Postgres writes it, where no number has an exponent: every message of the queue passes here. */
export function parseJsonb(text: string): unknown {
  return JSON.parse(LONG_NUMBER.test(text) ? markNumbers(text, '') : text);
}

const LONG_NUMBER = /(?:^|[[:, ])-?[0-9.]{16}/;

/**
 * True for every JSON with a number that a double would round, and for few others. It looks at what stands where a number can
 * begin: the letters and digits of an id read like exponents.
 */
export const MAY_ROUND = /(?:^|[[:,\s])-?(?:[0-9.]{16}|[0-9.]+[eE])/;

/** The digits behind the mark; undefined for any other text. */
export function digitsIn(text: string): string | undefined {
  return text.startsWith(MARK) ? text.slice(MARK.length) : undefined;
}

export function isTooLong(digits: string): boolean {
  const [, exponent = '0'] = digits.toLowerCase().split('e');
  return digits.length > DIGITS_MAX || Math.abs(Number(exponent)) > DIGITS_MAX;
}

/** Whether one of the marked numbers is, also one that JSON.parse would drop. */
export function hasTooLong(marked: string): boolean {
  for (const [, digits = ''] of marked.matchAll(MARKED)) if (isTooLong(digits)) return true;
  return false;
}

/** As JSON.stringify, with marked numbers as the numbers they were. */
export function stringifyMarked(value: unknown): string {
  return JSON.stringify(value).replace(MARKED, '$1');
}

/** Behind the quote that closes the string whose first quote is at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
}
