// A signature described by data. readScheme refuses a description whose signature would not cover the body, or would let one
// part borrow from another, so that it can neither be stored nor be used.

import type { JsonValue } from '../json.ts';
import { check, type Schema, SchemaError } from '../schema.ts';
import type { Scheme } from './provider.ts';
import { TOLERANCE_SEC } from './signature.ts';

const HEADER_NAME = '^[a-z0-9][a-z0-9-]{0,63}$';
const POINTER = '^(/([^/~]|~[01])*){1,8}$';
/** A day: longer than any provider's clock is wrong. */
const TOLERANCE_MAX_SEC = 86_400;

export const SCHEME_SCHEMA = {
  type: 'object',
  properties: {
    header: { type: 'string', pattern: HEADER_NAME, description: 'holds the signature' },
    algorithm: { type: 'string', pattern: '^(sha256|sha1)$' },
    encoding: { type: 'string', pattern: '^(hex|base64)$' },
    prefix: { type: 'string', maxLength: 32, description: 'stands before the signature' },
    timestamp_header: { type: ['string', 'null'], pattern: HEADER_NAME },
    signed: { type: 'string', maxLength: 200, description: 'of {timestamp}, {id} and {body}' },
    id: { type: 'string', maxLength: 200, description: 'a JSON pointer or the name of a header' },
    type: { type: ['string', 'null'], maxLength: 200, pattern: POINTER },
    tolerance_sec: { type: 'integer', minimum: 1, maximum: TOLERANCE_MAX_SEC },
    secret_encoding: { type: 'string', pattern: '^(utf8|base64|hex)$' },
  },
  required: ['header', 'id'],
  additionalProperties: false,
} as const satisfies Schema;

const DEFAULTS = {
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  timestamp_header: null,
  type: null,
  tolerance_sec: TOLERANCE_SEC,
  secret_encoding: 'utf8',
} as const;

/** The scheme with its defaults; throws SchemaError with the first thing that is wrong. */
export function readScheme(value: JsonValue): Scheme {
  const given = check(SCHEME_SCHEMA, value, 'the scheme');
  const signed = given.signed ?? (given.timestamp_header ? '{timestamp}.{body}' : '{body}');
  const scheme = { ...DEFAULTS, ...given, signed } as Scheme;
  const problem = findProblem(scheme);
  if (problem !== undefined) throw new SchemaError(problem);
  return scheme;
}

function findProblem({ signed, id, timestamp_header }: Scheme): string | undefined {
  const names = [...signed.matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name);
  const isTwice = new Set(names).size !== names.length;
  const isStrange = names.some((name) => name !== 'timestamp' && name !== 'id' && name !== 'body');
  if (isTwice || isStrange || /[{}]/.test(signed.replace(/\{[^{}]*\}/g, '')))
    return 'signed may hold {timestamp}, {id} and {body}, each once.';
  if (/\}[A-Za-z0-9]*\{/.test(signed))
    return 'signed needs a sign such as . or : between two parts: else one could borrow from the other.';
  if (!names.includes('body')) return 'signed must hold {body}: else anyone could change it.';
  if (names.includes('timestamp') !== (timestamp_header !== null))
    return 'signed holds {timestamp} exactly where there is a timestamp_header: an unsigned time proves nothing.';
  if (!isPointer(id) && !new RegExp(HEADER_NAME).test(id))
    return 'id must be a JSON pointer such as /id or the name of a header.';
  if (names.includes('id') && isPointer(id)) return 'signed may hold {id} only where id is a header.';
  return undefined;
}

export function isPointer(text: string): boolean {
  return new RegExp(POINTER).test(text);
}

/** RFC 6901, for what the pattern lets through. */
export function follow(pointer: string, value: JsonValue): JsonValue | undefined {
  let found: JsonValue | undefined = value;
  for (const part of pointer.slice(1).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as { [key: string]: JsonValue })[name];
  }
  return found;
}
