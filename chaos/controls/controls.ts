// Sluice broken on purpose, each time in one place. A judge that finds nothing here would find nothing anywhere.

import * as orders from './order_patches.ts';
import * as patches from './patches.ts';
import type { Control } from './run_control.ts';

const CRASHES_OF_DB1 = ['kill-db1-postmaster', 'stop-db1-immediate', 'kill-db1-backend'] as const;

/** The mildest: with a fault of Stripe's there are paid orders. */
const PAID_ORDERS = ['stripe-clock'] as const;
/** Longer than what is left of holds and grace when the clients have gone. */
const NEVER_DRAINS_MS = 30_000;

export const CONTROLS: readonly Control[] = [
  {
    name: 'fence-off',
    why: 'finishing a message does not ask whose lease it is (second commits are slow, so that others have it)',
    promises: ['I9'],
    options: {
      patch: { db1: patches.FENCE_OFF, db2: patches.SLOW_SECOND_COMMIT },
      faults: ['stall-worker'],
      minutes: 0.75,
    },
  },
  {
    name: 'synchronous-commit-off',
    why: 'DB1 answers before the commit is on disk (synchronous_commit off, wal_writer_delay 1 s)',
    promises: ['I1'],
    // What is lost is what came in since the last write; with the default of 200 ms some runs are lucky.
    options: {
      settings: { db1: { synchronous_commit: 'off', wal_writer_delay: '1s' } },
      faults: ['kill-db1-postmaster', 'stop-db1-immediate'],
      scale: 'full',
    },
  },
  {
    name: 'fsync-off',
    why: 'DB1 does not wait for its disk, and loses power',
    promises: ['I1'],
    options: { settings: { db1: { fsync: 'off' } }, faults: ['power-cut'] },
  },
  {
    name: 'prd-reaper',
    why: 'old reservations are put back on sale while the ledger is away, with no constraint against a second sale',
    promises: ['I2', 'I12'],
    options: {
      patch: { db1: patches.PRD_REAPER },
      faults: ['kill-db2-postmaster', 'stop-db2-immediate'],
    },
  },
  {
    name: 'do-nothing',
    why: 'the same, and the ledger answers a conflict with "done"',
    promises: ['I3'],
    options: {
      patch: { db1: patches.PRD_REAPER, db2: patches.DO_NOTHING },
      faults: ['kill-db2-postmaster', 'stop-db2-immediate'],
    },
  },
  {
    name: 'no-request-id',
    why: 'a retried claim is a new claim',
    promises: ['I1'],
    options: { patch: { db1: patches.NO_REQUEST_ID }, faults: ['cut-after-request', 'cut', 'kill-server'] },
  },
  {
    name: 'no-rebuild',
    why: 'an empty slot table after a crash is believed',
    promises: ['I5'],
    options: { patch: { db1: patches.NO_REBUILD }, faults: CRASHES_OF_DB1 },
  },
  {
    name: 'fresh-slots',
    why: 'after a crash slots are put on sale anew, under new ids',
    promises: ['I4', 'I5'],
    options: { patch: { db1: patches.FRESH_SLOTS }, faults: CRASHES_OF_DB1 },
  },
  {
    name: 'unlogged-queue',
    why: 'a crash empties the queue',
    promises: ['I6', 'I10'],
    options: { patch: { db1: patches.UNLOGGED_QUEUE }, faults: [...CRASHES_OF_DB1, 'stop-db2-immediate'] },
  },
  {
    name: 'facts-counted-twice',
    why: 'two events that tell one fact take effect twice',
    promises: ['I7', 'I8'],
    options: { patch: { db2: patches.FACTS_COUNTED_TWICE } },
  },
  {
    name: 'audit-apart',
    why: 'the audit row is not part of the action',
    promises: ['I11'],
    options: { patch: { db1: patches.AUDIT_APART } },
  },
  {
    name: 'outages-counted',
    why: 'an outage uses up attempts',
    promises: ['I12'],
    options: {
      patch: { db1: patches.OUTAGES_COUNTED },
      faults: ['kill-db2-postmaster', 'stop-db2-immediate'],
    },
  },
  {
    name: 'takeovers-counted',
    why: 'an event whose lease ran out once is a dead letter, whatever became of its worker or its database',
    promises: ['I12'],
    options: {
      patch: { db2: patches.TAKEOVERS_COUNTED },
      faults: ['stall-worker', 'kill-db2-postmaster'],
      minutes: 0.5,
    },
  },
  {
    name: 'webhook-late-mark',
    why: 'marking an event does not ask whose lease it is (taken over events are slow, so that others have them)',
    promises: ['I9'],
    options: { patch: { db2: patches.WEBHOOK_LATE_MARK }, faults: ['stall-worker'], minutes: 0.75 },
  },
  {
    name: 'one-lane',
    why: 'all pools share one lane, so that messages wait for the slowest hook of all',
    promises: ['I13'],
    options: { patch: { db1: patches.ONE_LANE }, faults: ['neighbour-slow-hook'] },
  },
  {
    name: 'no-pull',
    why: 'a session that was paid is not told to the ledger: only webhooks tell payments',
    promises: ['I14'],
    // Its seats stay held, so it never drains.
    options: { patch: { db2: orders.NO_PULL }, faults: ['webhook-dropped'], drainMs: NEVER_DRAINS_MS },
  },
  {
    name: 'grace-unbounded',
    why: 'without Stripe a hold is never given up',
    promises: ['I15'],
    options: { patch: { db1: orders.GRACE_UNBOUNDED }, faults: ['stripe-down'], minutes: 0.5 },
  },
  {
    name: 'free-before-closing',
    why: 'seats are free at the end of the hold, and the session still takes money',
    promises: ['I16'],
    options: {
      patch: { db1: orders.FREE_BEFORE_CLOSING },
      faults: ['stripe-down', 'stripe-slow'],
      minutes: 0.5,
    },
  },
  {
    name: 'paid-no-tombstone',
    why: 'a void removes the ticket and leaves no tombstone',
    promises: ['I17'],
    options: { patch: { db2: orders.PAID_NO_TOMBSTONE }, faults: PAID_ORDERS },
  },
  {
    name: 'second-payment-funds',
    why: 'two payments may buy one order',
    promises: ['I18'],
    options: {
      patch: { db1: orders.SECOND_PAYMENT_FUNDS },
      faults: PAID_ORDERS,
      minutes: 0.5,
      scale: 'full',
    },
  },
  {
    name: 'group-in-part',
    why: 'a request for several seats gets as many as there are',
    promises: ['I18'],
    options: { patch: { db1: orders.GROUP_IN_PART }, faults: PAID_ORDERS },
  },
];
