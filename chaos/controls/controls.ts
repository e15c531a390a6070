// Sluice broken on purpose, each time in one place. A judge that finds nothing here would find nothing anywhere.

import { readFileSync } from 'node:fs';
import type { Control } from './run_control.ts';

const sql = (name: string): string =>
  ['patch', name].map((file) => readFileSync(new URL(`${file}.sql`, import.meta.url), 'utf8')).join('\n');

const CRASHES_OF_DB1 = ['kill-db1-postmaster', 'stop-db1-immediate', 'kill-db1-backend'] as const;

export const CONTROLS: readonly Control[] = [
  {
    name: 'fence-off',
    why: 'finishing a message does not ask whose lease it is (second commits are slow, so that others have it)',
    promises: ['I9'],
    options: {
      patch: { db1: sql('fence_off'), db2: sql('slow_second_commit') },
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
    name: 'prd-reaper',
    why: 'old reservations are put back on sale while the ledger is away, with no constraint against a second sale',
    promises: ['I2', 'I12'],
    options: {
      patch: { db1: sql('prd_reaper') },
      faults: ['kill-db2-postmaster', 'stop-db2-immediate'],
    },
  },
  {
    name: 'do-nothing',
    why: 'the same, and the ledger answers a conflict with "done"',
    promises: ['I3'],
    options: {
      patch: { db1: sql('prd_reaper'), db2: sql('do_nothing') },
      faults: ['kill-db2-postmaster', 'stop-db2-immediate'],
    },
  },
  {
    name: 'no-request-id',
    why: 'a retried claim is a new claim',
    promises: ['I1'],
    options: { patch: { db1: sql('no_request_id') }, faults: ['cut-after-request', 'cut', 'kill-server'] },
  },
  {
    name: 'no-rebuild',
    why: 'an empty slot table after a crash is believed',
    promises: ['I5'],
    options: { patch: { db1: sql('no_rebuild') }, faults: CRASHES_OF_DB1 },
  },
  {
    name: 'fresh-slots',
    why: 'after a crash slots are put on sale anew, under new ids',
    promises: ['I4', 'I5'],
    options: { patch: { db1: sql('fresh_slots') }, faults: CRASHES_OF_DB1 },
  },
  {
    name: 'unlogged-queue',
    why: 'a crash empties the queue',
    promises: ['I6', 'I10'],
    options: { patch: { db1: sql('unlogged_queue') }, faults: [...CRASHES_OF_DB1, 'stop-db2-immediate'] },
  },
  {
    name: 'facts-counted-twice',
    why: 'two events that tell one fact take effect twice',
    promises: ['I7', 'I8'],
    options: { patch: { db2: sql('facts_counted_twice') } },
  },
  {
    name: 'audit-apart',
    why: 'the audit row is not part of the action',
    promises: ['I11'],
    options: { patch: { db1: sql('audit_apart') } },
  },
  {
    name: 'outages-counted',
    why: 'an outage uses up attempts',
    promises: ['I12'],
    options: {
      patch: { db1: sql('outages_counted') },
      faults: ['kill-db2-postmaster', 'stop-db2-immediate'],
    },
  },
  {
    name: 'takeovers-counted',
    why: 'an event whose lease ran out once is a dead letter, whatever became of its worker or its database',
    promises: ['I12'],
    options: {
      patch: { db2: sql('takeovers_counted') },
      faults: ['stall-worker', 'kill-db2-postmaster'],
      minutes: 0.5,
    },
  },
  {
    name: 'webhook-late-mark',
    why: 'marking an event does not ask whose lease it is (taken over events are slow, so that others have them)',
    promises: ['I9'],
    options: { patch: { db2: sql('webhook_late_mark') }, faults: ['stall-worker'], minutes: 0.75 },
  },
];
