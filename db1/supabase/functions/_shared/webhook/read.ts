// From verified bytes to events. A provider cannot mend what it has sent, so a body that jsonb cannot keep is no error of
// the request: it becomes an event in quarantine, with its bytes, and the provider hears 2xx.

import { JsonError, type JsonReason, type JsonValue, MAX_DEPTH_LEVELS, parseJson } from '../json.ts';
import { toHex, utf8 } from './bytes.ts';
import type { HmacPort } from './hmac.ts';
import type { ReadEvent, SignedRequest, VerifyContext } from './provider.ts';

export type JsonObject = { [key: string]: JsonValue };

// ignoreBOM keeps the mark in the text, so that it can be refused instead of dropped.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** Two readings are possible; ours is JSON.parse's, where the last one wins. */
const AMBIGUOUS: ReadonlySet<JsonReason> = new Set(['duplicate_key', 'forbidden_key']);

const NAME_CHARS_MAX = 200;
const SANE_NAME = new RegExp(`^[^\\p{Cc}\\p{Cs}]{1,${NAME_CHARS_MAX}}$`, 'u');
const LONE_SURROGATE = /\p{Surrogate}/u;
/** The end of the year 9999, the last that ISO 8601 writes with four digits. */
const LAST_SECOND = 253_402_300_799;

/**
 * What JSON.parse and jsonb might not read alike: an escaped NUL or surrogate, a number of many digits or with an exponent.
 * A text without them needs no second look, and JSON.parse is six times as fast as parseJson (5 against 31 µs for 1 KB of
 * short fields). Equal keys are no trouble then, since the last one wins with both.
 */
const SUSPICIOUS = /\\u(?:0000|[dD][89a-fA-F])|[0-9.]{16}|[0-9][eE][+-]?[0-9]/;

export interface Document {
  readonly text: string;
  readonly value: JsonValue;
  /** JSON text where the bytes themselves must not be cast to jsonb. */
  readonly payload: string | null;
  readonly quarantine: string | null;
}

/** Throws JsonError for what is no JSON. */
export function readDocument(body: Uint8Array): Document {
  const { text, value } = parseLoosely(body);
  if (!SUSPICIOUS.test(text) && !isTooDeep(value)) return { text, value, payload: null, quarantine: null };
  try {
    parseJson(body);
    return { text, value, payload: null, quarantine: null };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const quarantine = AMBIGUOUS.has(error.reason) ? (findUnkeepable(value) ?? null) : error.reason;
    // Of two equal keys jsonb reads both before it drops one, so it gets what JSON.parse has left.
    const payload = quarantine === null ? JSON.stringify(value) : null;
    return { text, value, payload, quarantine };
  }
}

/** As JSON.parse reads it; throws JsonError for what is no JSON. */
export function parseLoosely(body: Uint8Array): { text: string; value: JsonValue } {
  let text: string;
  try {
    text = decoder.decode(body);
  } catch {
    throw new JsonError('invalid_utf8', 0);
  }
  if (text.charCodeAt(0) === 0xfeff) throw new JsonError('byte_order_mark', 0);
  try {
    return { text, value: JSON.parse(text) };
  } catch {
    throw new JsonError('syntax', 0);
  }
}

/** Why jsonb, or a reader with doubles, could not keep this value. */
export function findUnkeepable(value: JsonValue, depth = 0): JsonReason | undefined {
  if (typeof value === 'string') return findInText(value);
  if (typeof value === 'number')
    return Math.abs(value) > Number.MAX_SAFE_INTEGER ? 'number_too_large' : undefined;
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
  return LONE_SURROGATE.test(text) ? 'lone_surrogate' : undefined;
}

/** What a provider reads out of a body; an absent type or time is fine, a wrong one is not. */
export interface Described {
  readonly id: JsonValue | undefined;
  readonly type: JsonValue | undefined;
  /** From isoOfSeconds or isoOfText: undefined is a time nobody can read. */
  readonly occurredAt: string | null | undefined;
}

interface Content {
  readonly payload: string | null;
  readonly hash: string;
  readonly dedupeHash?: string;
  readonly quarantine: string | null;
}

export function eventFrom({ id, type, occurredAt }: Described, content: Content): ReadEvent {
  const hasType = type !== undefined && type !== null;
  const quarantine =
    content.quarantine ??
    (isSaneName(id) ? null : 'no_id') ??
    (hasType && !isSaneName(type) ? 'bad_type' : null) ??
    (occurredAt === undefined ? 'bad_time' : null);
  return {
    eventId: isSaneName(id) ? id : `sha256:${content.hash}`,
    eventType: isSaneName(type) ? type : 'unknown',
    occurredAt: occurredAt ?? null,
    payload: quarantine === null ? content.payload : null,
    hash: content.hash,
    dedupeHash: content.dedupeHash ?? null,
    quarantine,
  };
}

/** An event whose payload is its content, unless a jsonb cannot keep it. */
export function eventOf(described: Described, content: JsonObject, hash: string): ReadEvent {
  const quarantine = findUnkeepable(content) ?? null;
  return eventFrom(described, {
    payload: quarantine === null ? JSON.stringify(content) : null,
    hash,
    quarantine,
  });
}

export interface ReadRules {
  describe(body: JsonObject): Described;
  /** What identifies the content, where that is not the whole body. */
  contentOf?(text: string): string;
  /** Set where the id is not signed. */
  readonly keyOnBody?: boolean;
}

/** A body that is one event. */
export async function readOne(
  { body }: SignedRequest,
  { port }: VerifyContext,
  { describe, contentOf, keyOnBody = false }: ReadRules,
): Promise<ReadEvent[]> {
  const { text, value, payload, quarantine } = readDocument(body);
  const hash = await hashOf(port, contentOf?.(text) ?? body);
  const described = isObject(value) ? describe(value) : NOTHING;
  const problem = quarantine ?? (isObject(value) ? null : 'not_an_object');
  const dedupe = keyOnBody ? { dedupeHash: hash } : {};
  return [eventFrom(described, { payload, hash, quarantine: problem, ...dedupe })];
}

export const NOTHING: Described = { id: undefined, type: undefined, occurredAt: null };

export async function hashOf(port: HmacPort, content: Uint8Array | string): Promise<string> {
  return toHex(await port.sha256(typeof content === 'string' ? utf8(content) : content));
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isSaneName(value: unknown): value is string {
  return typeof value === 'string' && SANE_NAME.test(value);
}

/** Null where there is no time, undefined where there is one that cannot be read. */
export function isoOfSeconds(value: JsonValue | undefined): string | null | undefined {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !(value >= 0 && value <= LAST_SECOND)) return undefined;
  return new Date(value * 1_000).toISOString();
}

/** As isoOfSeconds. */
export function isoOfText(value: JsonValue | undefined): string | null | undefined {
  if (value === undefined || value === null) return null;
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return time >= 0 && time <= LAST_SECOND * 1_000 ? new Date(time).toISOString() : undefined;
}
