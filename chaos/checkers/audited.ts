// I11: audit rows = operator actions. One row for each thing an operator was told had been done, none for a refusal; an
// action without an answer may have happened, and then once.

import type { OperatorCall } from '../history.ts';
import type { VoidCall } from '../paid_history.ts';
import { type Checker, groupBy } from './lookup.ts';

/** What the harness does before the run begins is audited too, but does not count as an operator's action. */
const SETUP: ReadonlySet<string> = new Set([
  'webhook_endpoint_add',
  'webhook_endpoint_change',
  'call_site_add',
  'call_site_change',
]);

/** Answers that say nothing was done; of a dead letter every other answer is audited, also why it stays. */
const UNDONE: ReadonlySet<string> = new Set([
  'not_found',
  'unknown',
  'in_flight',
  'already_processed',
  'already_skipped',
  'quarantined',
  'would_replay',
  'would_discard',
  'would_skip',
]);

const keyOf = (action: string, id: string, reason: string | null) => `${action} of ${id} (${reason})`;

export const auditedAsDone: Checker = ({ operatorActions, paid, final }) => {
  const rows = groupBy(
    final.audit
      .filter((row) => !SETUP.has(row.action))
      .flatMap((row) => row.ids.map((id) => keyOf(row.action, id, row.reason))),
    (key) => key,
  );
  const actions = new Map([
    ...operatorActions.flatMap((call) => call.ids.map((id) => entryOf(call, id))),
    ...(paid?.voids ?? []).flatMap((call) => call.claimIds.map((id) => voidEntryOf(call, id))),
  ]);
  return [
    ...[...actions].flatMap(([key, { least, most }]) => {
      const written = rows.get(key)?.length ?? 0;
      return written < least || written > most
        ? [`${key} has ${written} audit rows instead of ${least}`]
        : [];
    }),
    ...[...rows.keys()]
      .filter((key) => !actions.has(key))
      .map((key) => `the audit log has ${key}, which no operator did`),
  ];
};

type Entry = [key: string, rows: { least: number; most: number }];

/** A void is audited when it is asked for, whether or not there is a ticket to take back. */
function voidEntryOf({ reason, answer }: VoidCall, id: string): Entry {
  return [keyOf('ticket_void', id, reason), { least: answer === 'done' ? 1 : 0, most: 1 }];
}

function entryOf(call: OperatorCall, id: string): Entry {
  const key = keyOf(call.action, id, call.reason);
  if (call.answer === 'unknown') return [key, { least: 0, most: 1 }];
  const result = call.results.find((one) => one.id === id)?.result ?? 'unknown';
  const rows = call.answer === 'done' && !UNDONE.has(result) ? 1 : 0;
  return [key, { least: rows, most: rows }];
}
