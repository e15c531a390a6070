// How values go to the database and come back.

import pg from 'pg';
import { parseJsonb, parseWithDigits } from '#core/digits.ts';

const TIMESTAMPTZ_OID = 1184;
const BIGINT_OID = 20;
const JSON_OID = 114;
const JSONB_OID = 3802;

/** "2026-02-24 10:00:00.5+00" → "2026-02-24T10:00:00.5Z"; a Date would cost more and drop the microseconds. */
function isoTimestamp(text: string): string {
  if (text.endsWith('+00')) return `${text.slice(0, 10)}T${text.slice(11, -3)}Z`;
  const date = new Date(text);
  // 'infinity' is a timestamp too, and stays what it is.
  return Number.isNaN(date.getTime()) ? text : date.toISOString();
}

/** Counts and message ids stay far below 2^53; one that does not is an error, not a rounded number. */
function safeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('a bigint from the database is beyond 2^53');
  return value;
}

const PARSERS = new Map<number, (text: string) => unknown>([
  [TIMESTAMPTZ_OID, isoTimestamp],
  [BIGINT_OID, safeInteger],
  // A number that a double would round comes as a text.
  [JSON_OID, parseWithDigits],
  [JSONB_OID, parseJsonb],
]);

export const TYPES = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    PARSERS.get(oid) ?? pg.types.getTypeParser(oid, format as 'text'),
};

/** Without a copy: the Buffer is a view of the same bytes. */
export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/**
 * A list of objects is one JSON document; the driver would make a Postgres array of it. Lists of scalars are arrays. Where no
 * member needs an escape, JSON writes the same text in other brackets, and in a tenth of the driver's time.
 */
export function parameter(value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  if (value.some((item) => typeof item === 'object' && item !== null)) return JSON.stringify(value);
  if (!value.every(isPlain)) return value;
  const json = JSON.stringify(value);
  return json.includes('\\') ? value : `{${json.slice(1, -1)}}`;
}

/** JSON writes it as Postgres reads it. */
function isPlain(item: unknown): boolean {
  return (
    typeof item === 'string' ||
    typeof item === 'boolean' ||
    item === null ||
    (typeof item === 'number' && Number.isFinite(item))
  );
}
