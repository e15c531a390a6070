// The filters that `sluice webhooks` list, replay and skip share.

import type { EventFilter } from '#core/webhook/operators.ts';
import type { EventStatus } from '#core/webhook/ports.ts';
import { short, UsageError, type Values } from './grammar.ts';
import { readMoment, readText, readUuid } from './values.ts';

const STATUSES: readonly string[] = ['pending', 'processing', 'success', 'skipped', 'failed', 'dead_letter'];
/** Their ids are kept in memory: about 100 MB. */
const MAX_LIMIT = 1_000_000;
const MAX_TYPE_CHARS = 200;
const MAX_PATH_CHARS = 1_000;

const CHOOSING_OPTIONS = {
  'webhook-id': { value: 'UUID', about: 'of this endpoint' },
  'event-id': { value: 'ID', about: 'with this id of the provider' },
  provider: { value: 'NAME', about: 'of this provider' },
  type: { value: 'TYPE', about: 'of this type; charge.* means all that begin with charge.' },
  error: { value: 'TEXT', about: "whose error, or an issue's error, has this text in it, in any case" },
  path: {
    value: 'JSONPATH',
    about: `in whose payload this JSON path of Postgres finds something: '$.data.object.amount > 1000'`,
  },
  status: { value: 'LIST', about: `${STATUSES.join(', ')}; commas between` },
  since: { value: 'TIME', about: 'received from then on: 2026-02-24 or 2026-02-24T10:00:00Z' },
  until: { value: 'TIME', about: 'received before then' },
};
export const FILTER_OPTIONS = {
  ...CHOOSING_OPTIONS,
  limit: { range: [1, MAX_LIMIT], about: 'at most this many (default 100)' },
} as const;

/** A limit chooses nothing: a replay with it alone would be a replay of everything. */
const CHOOSING = Object.keys(CHOOSING_OPTIONS) as (keyof typeof CHOOSING_OPTIONS)[];
const DEFAULT_LIMIT = 100;

export type FilterValues = Partial<Values<typeof FILTER_OPTIONS>>;

/** `values` may hold other options too; none of them chooses events. */
export function isFiltered(values: FilterValues): boolean {
  return CHOOSING.some((name) => values[name] !== undefined);
}

export function readFilter(values: FilterValues): EventFilter {
  const { provider, since, until, type, error, path } = values;
  const webhookId = values['webhook-id'];
  const eventId = values['event-id'];
  return {
    limit: values.limit ?? DEFAULT_LIMIT,
    ...(webhookId !== undefined && { webhook_id: readUuid('--webhook-id', webhookId) }),
    ...(eventId !== undefined && { event_id: readText('--event-id', eventId) }),
    ...(provider !== undefined && { provider: readText('--provider', provider) }),
    ...(type !== undefined && { type: readText('--type', type, MAX_TYPE_CHARS) }),
    ...(error !== undefined && { error: readText('--error', error) }),
    ...(path !== undefined && { path: readText('--path', path, MAX_PATH_CHARS) }),
    ...(values.status !== undefined && { statuses: readStatuses(values.status) }),
    ...(since !== undefined && { since: readMoment('--since', since) }),
    ...(until !== undefined && { until: readMoment('--until', until) }),
  };
}

function readStatuses(text: string): EventStatus[] {
  const statuses = text.split(',');
  const wrong = statuses.find((status) => !STATUSES.includes(status));
  if (wrong !== undefined)
    throw new UsageError(`--status is "${short(wrong)}"; known are ${STATUSES.join(', ')}`);
  return statuses as EventStatus[];
}
