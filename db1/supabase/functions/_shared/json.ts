// JSON from bytes, strictly: what two parsers could read in two ways, or what Postgres' jsonb refuses, is refused here with
// a reason. JSON.parse cannot do it: it keeps the last of two equal keys, sets __proto__, rounds 2^53 + 1 without a word,
// and takes any depth. A recursive descent over the decoded text costs 0.42 µs for a claim body, where decoding and JSON.parse cost 0.34.

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

export type JsonReason =
  | 'invalid_utf8'
  | 'byte_order_mark'
  | 'syntax'
  | 'duplicate_key'
  | 'forbidden_key'
  | 'too_deep'
  | 'nul_character'
  | 'lone_surrogate'
  | 'number_too_large'
  | 'number_not_exact'
  | 'too_many_fields';

export class JsonError extends Error {
  override readonly name = 'JsonError';
  readonly reason: JsonReason;
  /** Where in the text, counted in UTF-16 units from 0. */
  readonly position: number;

  constructor(reason: JsonReason, position: number) {
    super(`${reason} at position ${position}`);
    this.reason = reason;
    this.position = position;
  }
}

/** Node parses five million levels and Postgres fails near 20,000; nothing we take needs more than a few. */
export const MAX_DEPTH_LEVELS = 32;

// ignoreBOM keeps the mark in the text, so that it can be refused instead of dropped.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LONE_SURROGATE = /\p{Surrogate}/u;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const PLAIN_INTEGER = /^-?[0-9]{1,15}$/;

export function parseJson(bytes: Uint8Array): JsonValue {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw new JsonError('invalid_utf8', 0);
  }
  return new Parser(text).document();
}

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonValue {
    if (this.#text.charCodeAt(0) === 0xfeff) throw new JsonError('byte_order_mark', 0);
    const value = this.#value();
    this.#skipSpace();
    if (this.#at < this.#text.length) this.#fail('syntax');
    return value;
  }

  #fail(reason: JsonReason): never {
    throw new JsonError(reason, this.#at);
  }

  #skipSpace(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
      this.#at++;
    }
  }

  /** Skips space and takes one character that has to be there. */
  #expect(character: string): void {
    this.#skipSpace();
    if (this.#text[this.#at] !== character) this.#fail('syntax');
    this.#at++;
  }

  /** Skips space and takes the character if it is there. */
  #take(character: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #value(): JsonValue {
    this.#skipSpace();
    switch (this.#text[this.#at]) {
      case '"':
        return this.#string();
      case '{':
        return this.#object();
      case '[':
        return this.#array();
      case 't':
        return this.#word('true', true);
      case 'f':
        return this.#word('false', false);
      case 'n':
        return this.#word('null', null);
      default:
        return this.#number();
    }
  }

  #word<Value>(word: string, value: Value): Value {
    if (!this.#text.startsWith(word, this.#at)) this.#fail('syntax');
    this.#at += word.length;
    return value;
  }

  #enter(): void {
    if (++this.#depth > MAX_DEPTH_LEVELS) this.#fail('too_deep');
    this.#at++;
  }

  #object(): JsonValue {
    this.#enter();
    const object: { [key: string]: JsonValue } = {};
    if (!this.#take('}')) {
      do {
        this.#skipSpace();
        const key = this.#string();
        if (key === '__proto__') this.#fail('forbidden_key');
        if (Object.hasOwn(object, key)) this.#fail('duplicate_key');
        this.#expect(':');
        object[key] = this.#value();
      } while (this.#take(','));
      this.#expect('}');
    }
    this.#depth--;
    return object;
  }

  #array(): JsonValue {
    this.#enter();
    const array: JsonValue[] = [];
    if (!this.#take(']')) {
      do array.push(this.#value());
      while (this.#take(','));
      this.#expect(']');
    }
    this.#depth--;
    return array;
  }

  #string(): string {
    const text = this.#text;
    if (text.charCodeAt(this.#at) !== QUOTE) this.#fail('syntax');
    let end = this.#at + 1;
    let escaped = false;
    for (; ; end++) {
      const unit = text.charCodeAt(end);
      if (unit === QUOTE) break;
      if (unit === BACKSLASH) {
        escaped = true;
        end++;
      } else if (!(unit >= 0x20)) {
        // A control character, or NaN: the end of the text.
        this.#fail('syntax');
      }
    }
    const value = escaped ? this.#unescape(text.slice(this.#at, end + 1)) : text.slice(this.#at + 1, end);
    this.#at = end + 1;
    return value;
  }

  /** The rare path. A decoded text has no lone surrogates and no NUL, so only an escape can bring one in. */
  #unescape(literal: string): string {
    let value: string;
    try {
      value = JSON.parse(literal);
    } catch {
      return this.#fail('syntax');
    }
    if (value.includes('\0')) this.#fail('nul_character');
    if (LONE_SURROGATE.test(value)) this.#fail('lone_surrogate');
    return value;
  }

  #number(): number {
    NUMBER.lastIndex = this.#at;
    const literal = NUMBER.exec(this.#text)?.[0];
    if (literal === undefined) return this.#fail('syntax');
    const value = Number(literal);
    if (!PLAIN_INTEGER.test(literal)) {
      if (Math.abs(value) > Number.MAX_SAFE_INTEGER) this.#fail('number_too_large');
      if (decimal(literal) !== decimal(String(value))) this.#fail('number_not_exact');
    }
    this.#at += literal.length;
    return value;
  }
}

/** Whether a double holds the number that this literal writes, and every integer near it. */
export function isExactNumber(literal: string): boolean {
  if (PLAIN_INTEGER.test(literal)) return true;
  const value = Number(literal);
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER && decimal(literal) === decimal(String(value));
}

/** One spelling per decimal value ("1.50", "15e-1" → "15e-1"), to see whether a double kept what was written. */
function decimal(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.replace(/^-/, '').toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = (whole + fraction).replace(/^0+/, '');
  const end = significantEnd(digits);
  if (end === 0) return '0';
  return `${digits.slice(0, end)}e${Number(exponent) - fraction.length + (digits.length - end)}`;
}

/** Where the zeros at the end begin. A regular expression would try each of a long row anew: 64 KB of them took two seconds. */
function significantEnd(digits: string): number {
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return end;
}
