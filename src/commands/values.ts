// Values on the command line that several commands read. An invalid value is refused here, before any server is asked.

import { HttpError } from '#core/errors.ts';
import { UUID } from '#core/operator.ts';
import { check, type Schema, SchemaError } from '#core/schema.ts';
import { MOMENT, momentOf } from '#core/webhook/admin.ts';
import { short, UsageError } from './grammar.ts';

const MAX_TEXT_CHARS = 500;
export const UUID_FORM = 'a uuid such as 0198c0de-0000-7000-8000-000000000001';

export function readUuid(name: string, text: string): string {
  return checked(UUID, text.toLowerCase(), `${name} is "${short(text)}"; it must be ${UUID_FORM}`);
}

export function isUuid(text: string): boolean {
  return new RegExp(UUID.pattern, 'i').test(text);
}

export function readUrl(name: string, text: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text;
  throw new UsageError(
    `${name} is "${short(text)}"; say an address such as https://tickets.example.com/path`,
  );
}

export function readReason(reason: string | undefined): string | null {
  return reason === undefined ? null : readText('--reason', reason);
}

export function readText(name: string, text: string, maxChars = MAX_TEXT_CHARS): string {
  // Postgres has no NUL in text.
  if (text.length >= 1 && text.length <= maxChars && !text.includes('\0')) return text;
  throw new UsageError(`${name} must have 1 to ${maxChars} characters, none of them NUL`);
}

export function readMoment(name: string, text: string): string {
  const wrong = `${name} is "${short(text)}"; say 2026-02-24 or 2026-02-24T10:00:00Z`;
  try {
    return momentOf(name, checked(MOMENT, text, wrong));
  } catch (error) {
    if (error instanceof HttpError) throw new UsageError(wrong);
    throw error;
  }
}

function checked(schema: Schema, text: string, wrong: string): string {
  try {
    check(schema, text);
    return text;
  } catch (error) {
    if (error instanceof SchemaError) throw new UsageError(wrong);
    throw error;
  }
}
