// What waits in DB2 of orders that are paid for.

import type { CallFunction } from '#core/call_function.ts';
import type { LedgerOrderLevel } from '#core/console/sample.ts';
import type { Log } from '#core/ports.ts';
import type { Page } from '../metrics.ts';
import { databasePage, type Level, type Timing } from './database_page.ts';

const LEVELS: readonly Level<LedgerOrderLevel>[] = [
  {
    name: 'sluice_outbox_depth',
    help: 'Payments and voids that the courier has to carry to the intake.',
    labels: ['kind'],
    read: ({ outbox }) => Object.entries(outbox).map(([kind, { due }]) => [due, { kind }]),
  },
  {
    name: 'sluice_outbox_oldest_seconds',
    help: 'How long the oldest of them has been waiting.',
    labels: ['kind'],
    read: ({ outbox }) => Object.entries(outbox).map(([kind, { oldest_sec }]) => [oldest_sec, { kind }]),
  },
  {
    name: 'sluice_outbox_dead_letters',
    help: 'Payments and voids that the intake can never be told, until an operator lets them be tried again.',
    labels: ['kind'],
    read: ({ outbox }) => Object.entries(outbox).map(([kind, { dead_letters }]) => [dead_letters, { kind }]),
  },
  {
    name: 'sluice_refunds',
    help: 'Refunds that are owed, by state.',
    labels: ['state'],
    read: ({ refunds }) => Object.entries(refunds).map(([state, count]) => [count, { state }]),
  },
  {
    name: 'sluice_refunds_oldest_seconds',
    help: 'How long the oldest refund that is due has been owed.',
    read: ({ refunds_oldest_sec }) => [[refunds_oldest_sec]],
  },
  {
    name: 'sluice_refunds_braked',
    help: 'Refunds that are held back because too many were owed at once.',
    read: ({ braked }) => [[braked]],
  },
  {
    name: 'sluice_decisions',
    help: 'Payments of the last hour, by what the intake decided that they are for.',
    labels: ['decision'],
    read: ({ decisions }) => Object.entries(decisions).map(([decision, count]) => [count, { decision }]),
  },
];

/** `call` takes names of functions in schema public of DB2. Whether that answers is told by the backlog of webhooks. */
export function createOrderLevels(call: CallFunction, log: Log, timing?: Timing): Page {
  const name = 'ledger_order_metrics';
  const look = async () => (await call<{ [name]: LedgerOrderLevel }>(name, {}))[0]?.[name];
  return databasePage({ database: 'DB2', looks: [{ look }], levels: LEVELS }, log, timing);
}
