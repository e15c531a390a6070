// From verified bytes to events. A provider cannot mend what it has sent, so a body that jsonb cannot keep is not refused:
// it becomes an event in quarantine, with its bytes, and the provider gets 2xx.

import { digitsIn, hasTooLong, isTooLong, MAY_ROUND, markNumbers, stringifyMarked } from '../digits.ts';
import { JsonError, type JsonReason, type JsonValue, MAX_DEPTH_LEVELS } from '../json.ts';
import { toHex, utf8 } from './bytes.ts';
import type { HmacPort } from './hmac.ts';
import type { ReadEvent, SignedRequest, VerifyContext } from './provider.ts';

export type JsonObject = { [key: string]: JsonValue };

// ignoreBOM keeps the mark in the text, so that it can be refused instead of dropped.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const NAME_CHARS_MAX = 200;
const SANE_NAME = new RegExp(`^[^\\p{Cc}\\p{Cs}]{1,${NAME_CHARS_MAX}}$`, 'u');
const INTEGER = /^-?[0-9]+$/;
const LONE_SURROGATE = /\p{Surrogate}/u;
/** The end of the year 9999, the last that ISO 8601 writes with four digits. */
const LAST_SECOND = 253_402_300_799;

/** An escaped NUL or surrogate, which jsonb refuses unless it is one of a pair. */
const ODD_ESCAPE = /\\u(?:0000|[dD][89a-fA-F])/;
const SURROGATE_PAIRS = /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}/g;

export interface Document {
  readonly text: string;
  /** With marked numbers (../digits.ts). */
  readonly value: JsonValue;
  /** JSON text where the text itself must not be cast to jsonb. */
  readonly payload: string | null;
  readonly quarantine: string | null;
}

/** Throws JsonError for text that is not JSON. */
export function readDocument(text: string): Document {
  const { value, marked } = parseBoth(text);
  const isOdd = ODD_ESCAPE.test(text);
  // A text without oddities needs no second look. Equal keys do no harm: the last one wins here and in jsonb.
  const isPlain = !isOdd && marked === text && !isTooDeep(value);
  const quarantine = isPlain ? null : (findUnkeepable(value) ?? null);
  // Of two equal keys jsonb reads both before it drops one; where that could fail it gets what JSON.parse has left.
  const isRefused = isOdd && ODD_ESCAPE.test(text.replace(SURROGATE_PAIRS, ''));
  const mayFail = quarantine === null && (isRefused || (marked !== text && hasTooLong(marked)));
  return { text, value, payload: mayFail ? stringifyMarked(value) : null, quarantine };
}

/** Throws JsonError for bytes that are not UTF-8. */
export function decode(body: Uint8Array): string {
  let text: string;
  try {
    text = decoder.decode(body);
  } catch {
    throw new JsonError('invalid_utf8', 0);
  }
  if (text.charCodeAt(0) === 0xfeff) throw new JsonError('byte_order_mark', 0);
  return text;
}

/** As JSON.parse reads it, but for marked numbers (../digits.ts); throws JsonError for a text that is not JSON. */
export function parseMarked(text: string): JsonValue {
  return parseBoth(text).value;
}

function parseBoth(text: string): { readonly value: JsonValue; readonly marked: string } {
  try {
    // First as it is: only JSON can be marked.
    const value = JSON.parse(text);
    const marked = MAY_ROUND.test(text) ? markNumbers(text) : text;
    return { value: marked === text ? value : JSON.parse(marked), marked };
  } catch {
    throw new JsonError('syntax', 0);
  }
}

/** Why jsonb could not keep this value. */
export function findUnkeepable(value: JsonValue, depth = 0): JsonReason | undefined {
  if (typeof value === 'string') return findInText(value);
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth >= MAX_DEPTH_LEVELS) return 'too_deep';
  for (const [key, item] of Object.entries(value)) {
    const problem = findInText(key) ?? findUnkeepable(item, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Writing such a value down again would need more stack than there is. */
export function isTooDeep(value: JsonValue, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (depth >= MAX_DEPTH_LEVELS) return true;
  for (const key in value) {
    if (isTooDeep((value as JsonObject)[key] ?? null, depth + 1)) return true;
  }
  return false;
}

function findInText(text: string): JsonReason | undefined {
  if (text.includes('\0')) return 'nul_character';
  const digits = digitsIn(text);
  if (digits !== undefined) return isTooLong(digits) ? 'number_too_large' : undefined;
  return LONE_SURROGATE.test(text) ? 'lone_surrogate' : undefined;
}

/**
 * What a provider reads out of a body; an absent type is fine, a wrong one is not. A time that cannot be read is none: a handler that
 * needs one refuses, and the payload stays.
 */
export interface Described {
  readonly id: JsonValue | undefined;
  readonly type: JsonValue | undefined;
  readonly occurredAt: string | null;
}

interface Content {
  readonly payload: string | null;
  readonly hash: string;
  readonly quarantine: string | null;
}

export function eventFrom({ id, type, occurredAt }: Described, content: Content): ReadEvent {
  const hasType = type !== undefined && type !== null;
  const name = nameOf(id);
  const quarantine =
    content.quarantine ??
    (name === undefined ? 'no_id' : null) ??
    (hasType && !isSaneName(type) ? 'bad_type' : null);
  return {
    eventId: name ?? `sha256:${content.hash}`,
    eventType: isSaneName(type) ? type : 'unknown',
    occurredAt,
    payload: quarantine === null ? content.payload : null,
    hash: content.hash,
    dedupeHash: null,
    quarantine,
  };
}

/** An id is a text, or an integer with all its digits. */
export function nameOf(id: JsonValue | undefined): string | undefined {
  const digits = typeof id === 'number' ? String(id) : typeof id === 'string' ? digitsIn(id) : undefined;
  if (digits !== undefined) return INTEGER.test(digits) && isSaneName(digits) ? digits : undefined;
  return isSaneName(id) ? id : undefined;
}

/** An event whose payload is its content, unless a jsonb cannot keep it. */
export function eventOf(described: Described, content: JsonObject, hash: string): ReadEvent {
  const quarantine = findUnkeepable(content) ?? null;
  return eventFrom(described, {
    payload: quarantine === null ? stringifyMarked(content) : null,
    hash,
    quarantine,
  });
}

export interface ReadRules {
  /** `hash` is that of the content. */
  describe(body: JsonObject, hash: string): Described;
  /** What identifies the content, where that is not the whole body. */
  contentOf?(text: string): string;
  /** Set where the id is not signed: what makes a delivery the same event under another id. */
  readonly dedupe?: 'body' | 'type and body';
  /** False where the text is only a part of the body, so that it has to be the payload itself. */
  readonly isWholeBody?: boolean;
}

/** A body that is one event. */
export function readOne(
  { body }: SignedRequest,
  context: VerifyContext,
  rules: ReadRules,
): Promise<ReadEvent[]> {
  return readText(decode(body), context, rules, body);
}

/** As readOne, for JSON that is the body or stands somewhere in it. */
export async function readText(
  json: string,
  { port }: VerifyContext,
  { describe, contentOf, dedupe, isWholeBody = true }: ReadRules,
  bytes: Uint8Array | string = json,
): Promise<ReadEvent[]> {
  const { text, value, payload, quarantine } = readDocument(json);
  const hash = await hashOf(port, contentOf?.(text) ?? bytes);
  const described = isObject(value) ? describe(value, hash) : NOTHING;
  const problem = quarantine ?? (isObject(value) ? null : 'not_an_object');
  const kept = payload ?? (isWholeBody ? null : text);
  const event = eventFrom(described, { payload: kept, hash, quarantine: problem });
  if (dedupe === undefined) return [event];
  return [
    { ...event, dedupeHash: dedupe === 'body' ? hash : await hashOf(port, `${event.eventType}\n${hash}`) },
  ];
}

export const NOTHING: Described = { id: undefined, type: undefined, occurredAt: null };

export async function hashOf(port: HmacPort, content: Uint8Array | string): Promise<string> {
  return toHex(await port.sha256(typeof content === 'string' ? utf8(content) : content));
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isSaneName(value: unknown): value is string {
  return typeof value === 'string' && SANE_NAME.test(value) && digitsIn(value) === undefined;
}

/** Null if the value is not a time. */
export function isoOfSeconds(value: JsonValue | undefined): string | null {
  if (typeof value !== 'number' || !(value >= 0 && value <= LAST_SECOND)) return null;
  return new Date(value * 1_000).toISOString();
}

/** As isoOfSeconds. */
export function isoOfText(value: JsonValue | undefined): string | null {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return time >= 0 && time <= LAST_SECOND * 1_000 ? new Date(time).toISOString() : null;
}

/** A text, seconds, or milliseconds, which are larger than any seconds. */
export function isoOfAny(value: JsonValue | undefined): string | null {
  if (typeof value !== 'number') return isoOfText(value);
  return isoOfSeconds(value > LAST_SECOND ? value / 1_000 : value);
}
