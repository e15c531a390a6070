// What waits in DB2, and what operators sent round again. Operators have pseudonyms here: a page of metrics is read and kept by
// more people than the audit log.

import { createHmac, randomBytes } from 'node:crypto';
import type { CallFunction } from '#core/call_function.ts';
import type { LedgerOrderLevel } from '#core/console/sample.ts';
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
  readonly orders: LedgerOrderLevel;
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
    name: 'sluice_outbox_depth',
    help: 'Payments and voids that the courier has to carry to the intake.',
    labels: ['kind'],
    read: ({ orders }) => Object.entries(orders.outbox).map(([kind, { due }]) => [due, { kind }]),
  },
  {
    name: 'sluice_outbox_oldest_seconds',
    help: 'How long the oldest of them has been waiting.',
    labels: ['kind'],
    read: ({ orders }) =>
      Object.entries(orders.outbox).map(([kind, { oldest_sec }]) => [oldest_sec, { kind }]),
  },
  {
    name: 'sluice_refunds',
    help: 'Refunds that are owed, by state.',
    labels: ['state'],
    read: ({ orders }) => Object.entries(orders.refunds).map(([state, count]) => [count, { state }]),
  },
  {
    name: 'sluice_refunds_braked',
    help: 'Refunds that are held back because too many were owed at once.',
    read: ({ orders }) => [[orders.braked]],
  },
  {
    name: 'sluice_payment_decisions',
    help: 'Payments that were decided within the last hour, by what they buy.',
    labels: ['decision'],
    read: ({ orders }) =>
      Object.entries(orders.decisions).map(([decision, count]) => [count, { decision }]),
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
 * `webhook` takes names of functions in schema webhook of DB2, `ledger` of those in public. Without an admin key operators have other pseudonyms in each process.
 */
export function createBacklog(
  webhook: CallFunction,
  ledger: CallFunction,
  adminKey: string | undefined,
  log: Log,
  timing?: Timing,
): Page {
  const levels = levelsWith(pseudonymsBy(adminKey ?? randomBytes(RANDOM_KEY_BYTES)));
  const look = async (): Promise<Look> => {
    const [rows, totals, [waiting], [sample]] = await Promise.all([
      webhook<BacklogRow>('metrics', {}),
      webhook<ReplayRow>('replay_totals', {}),
      webhook<{ count_payments_without_user: number }>('count_payments_without_user', {}),
      ledger<{ ledger_order_metrics: LedgerOrderLevel }>('ledger_order_metrics', {}),
    ]);
    const unnamed = waiting?.count_payments_without_user ?? 0;
    if (sample === undefined) throw new Error('ledger_order_metrics gave no answer');
    return { rows, totals, unnamed, orders: sample.ledger_order_metrics };
  };
  return databasePage(
    { database: 'DB2', upName: 'webhook_database_up', looks: [{ look }], levels },
    log,
    timing,
  );
}
