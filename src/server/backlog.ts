// What waits in DB2, and what operators sent round again. Operators have pseudonyms here: a page of metrics is read and kept by
// more people than the audit log.

import { createHmac, randomBytes } from 'node:crypto';
import type { CallFunction } from '#core/call_function.ts';
import type { Log } from '#core/ports.ts';
import type { Page } from '../metrics.ts';
import { databasePage, type Level, type Timing } from './database_page.ts';

/** A row of webhook.metrics. */
interface BacklogRow {
  readonly webhook_id: string;
  readonly provider: string;
  readonly pending: number;
  readonly failed: number;
  readonly processing: number;
  readonly dead_letter: number;
  /** Null where nothing is due. */
  readonly oldest_due_sec: number | null;
}

/** A row of webhook.replay_totals. */
interface ReplayRow {
  readonly webhook_id: string;
  readonly operator: string;
  readonly total: number;
}

interface Look {
  readonly rows: readonly BacklogRow[];
  readonly totals: readonly ReplayRow[];
  readonly unnamed: number;
}

const STATUSES = ['pending', 'failed', 'processing', 'dead_letter'] as const;

/** Twelve hex digits tell the operators of a house apart. */
const PSEUDONYM_CHARS = 12;
const RANDOM_KEY_BYTES = 32;

type Pseudonym = (operator: string) => string;

/** Keyed, so that only the holder of the admin key can compute it from a name and compare. */
export function pseudonymsBy(key: string | Uint8Array): Pseudonym {
  return (operator) => createHmac('sha256', key).update(operator).digest('hex').slice(0, PSEUDONYM_CHARS);
}

const levelsWith = (pseudonymOf: Pseudonym): readonly Level<Look>[] => [
  {
    name: 'webhook_backlog',
    help: 'Events that have not ended, and dead letters, by status.',
    labels: ['webhook_id', 'provider', 'status'],
    read: ({ rows }) =>
      rows.flatMap((row) => STATUSES.map((status) => [row[status], { ...endpointOf(row), status }] as const)),
  },
  {
    name: 'webhook_oldest_due_seconds',
    help: 'How long the oldest event that could be processed has been waiting.',
    labels: ['webhook_id', 'provider'],
    read: ({ rows }) => rows.map((row) => [row.oldest_due_sec ?? 0, endpointOf(row)]),
  },
  {
    name: 'webhook_payments_without_user',
    help: 'Payments that moved money while no event names their user, counted up to 10000: their credits wait.',
    read: ({ unnamed }) => [[unnamed]],
  },
  {
    kind: 'counter',
    name: 'webhook_replay_total',
    help: 'Events sent round again by operators, from the audit log.',
    labels: ['webhook_id', 'operator'],
    read: ({ totals }) =>
      totals.map(({ total, webhook_id, operator }) => [
        total,
        { webhook_id, operator: pseudonymOf(operator) },
      ]),
  },
];

const endpointOf = ({ webhook_id, provider }: BacklogRow) => ({ webhook_id, provider });

/**
 * `call` takes names of functions in schema webhook of DB2. Without an admin key operators have other pseudonyms in each process.
 */
export function createBacklog(
  call: CallFunction,
  adminKey: string | undefined,
  log: Log,
  timing?: Timing,
): Page {
  const levels = levelsWith(pseudonymsBy(adminKey ?? randomBytes(RANDOM_KEY_BYTES)));
  const look = async (): Promise<Look> => {
    const [rows, totals, [waiting]] = await Promise.all([
      call<BacklogRow>('metrics', {}),
      call<ReplayRow>('replay_totals', {}),
      call<{ count_payments_without_user: number }>('count_payments_without_user', {}),
    ]);
    return { rows, totals, unnamed: waiting?.count_payments_without_user ?? 0 };
  };
  return databasePage(
    { database: 'DB2', upName: 'webhook_database_up', looks: [{ look }], levels },
    log,
    timing,
  );
}
