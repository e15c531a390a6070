// The filters that list, replay and skip share. What is not understood is refused here, before anything is asked.

import { HttpError } from '#core/errors.ts';
import { UUID } from '#core/operator.ts';
import { check, type Schema, SchemaError } from '#core/schema.ts';
import { MOMENT, momentOf } from '#core/webhook/admin.ts';
import type { EventFilter } from '#core/webhook/operators.ts';
import type { EventStatus } from '#core/webhook/ports.ts';
import { UsageError } from './usage_error.ts';

export const FILTER_OPTIONS = {
  'webhook-id': { type: 'string' },
  'event-id': { type: 'string' },
  provider: { type: 'string' },
  status: { type: 'string' },
  since: { type: 'string' },
  until: { type: 'string' },
  limit: { type: 'string' },
} as const;

export type FilterValues = { [Name in keyof typeof FILTER_OPTIONS]?: string | undefined };

const STATUSES: readonly string[] = ['pending', 'processing', 'success', 'skipped', 'failed', 'dead_letter'];
const DEFAULT_LIMIT = 100;
/** Their ids are kept in memory: about 100 MB. */
const MAX_LIMIT = 1_000_000;
const MAX_TEXT_CHARS = 500;

/** A limit chooses nothing: a replay with it alone would be a replay of everything. */
const CHOOSING = (Object.keys(FILTER_OPTIONS) as (keyof FilterValues)[]).filter((name) => name !== 'limit');

/** `values` may hold other options too; none of them chooses events. */
export function isFiltered(values: FilterValues): boolean {
  return CHOOSING.some((name) => values[name] !== undefined);
}

export function readFilter(values: FilterValues): EventFilter {
  const { provider, since, until } = values;
  const webhookId = values['webhook-id'];
  const eventId = values['event-id'];
  return {
    limit: readLimit(values.limit),
    ...(webhookId !== undefined && { webhook_id: readUuid('--webhook-id', webhookId) }),
    ...(eventId !== undefined && { event_id: readText('--event-id', eventId) }),
    ...(provider !== undefined && { provider: readText('--provider', provider) }),
    ...(values.status !== undefined && { statuses: readStatuses(values.status) }),
    ...(since !== undefined && { since: readMoment('--since', since) }),
    ...(until !== undefined && { until: readMoment('--until', until) }),
  };
}

export function readUuid(name: string, text: string): string {
  return checked(UUID, text.toLowerCase(), `${name} is "${short(text)}"; it must be a uuid`);
}

export function isUuid(text: string): boolean {
  return new RegExp(UUID.pattern, 'i').test(text);
}

export function readText(name: string, text: string, maxChars = MAX_TEXT_CHARS): string {
  // Postgres has no NUL in text.
  if (text.length >= 1 && text.length <= maxChars && !text.includes('\0')) return text;
  throw new UsageError(`${name} must have 1 to ${maxChars} characters, none of them NUL`);
}

export function readWhole(name: string, text: string, max: number): number {
  const value = Number(text);
  if (/^[1-9][0-9]{0,15}$/.test(text) && value <= max) return value;
  throw new UsageError(`${name} is "${short(text)}"; it must be a number from 1 to ${max}`);
}

function readLimit(text: string | undefined): number {
  return text === undefined ? DEFAULT_LIMIT : readWhole('--limit', text, MAX_LIMIT);
}

function readStatuses(text: string): EventStatus[] {
  const statuses = text.split(',');
  const wrong = statuses.find((status) => !STATUSES.includes(status));
  if (wrong !== undefined)
    throw new UsageError(`--status is "${short(wrong)}"; known are ${STATUSES.join(', ')}`);
  return statuses as EventStatus[];
}

function readMoment(name: string, text: string): string {
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

/** What came from outside is shown on one line, and not all of it. */
export function short(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '?').slice(0, 80);
}
