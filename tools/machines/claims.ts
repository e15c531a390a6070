import type { Machine, Transition } from './machine.ts';

const FINISH = 'bridge_finish';
const RECONCILE = 'reconcile_fix';
/** After the ledger has its tombstone, or says that it has the ticket. */
const ENDS = 'finish_ends';
const SETTLE = 'settle_payment';
/** After the ledger has its tombstone. */
const VOID = 'finish_void';

/** `ending` is not a state: it is a claim with an end that it still waits for. */
export const CLAIMS: Machine = {
  side: 'db1',
  table: 'public.claims',
  column: 'state',
  page: 'docs/operate.md',
  transitions: [
    { from: null, to: 'queued', event: 'claimed', by: ['claim_resource_and_queue', 'claim_batch'] },
    {
      from: null,
      to: 'held',
      event: 'claimed in a pool that is paid for',
      by: ['claim_resource_and_queue', 'claim_batch'],
    },
    { from: null, to: 'queued', event: 'paid late: stands for a claim that expired', by: [SETTLE] },
    { from: 'held', to: 'queued', event: 'paid', by: ['settle_payments', SETTLE] },
    {
      from: 'held',
      to: 'released',
      event: 'released',
      by: ['release_own_claim', 'release_claim_as_operator', 'expire_holds'],
    },
    { from: 'held', to: 'expired', event: 'hold over', by: ['expire_holds', 'expire_due_holds', RECONCILE] },
    { from: null, to: 'queued', event: 'replay: its old slot is gone', by: ['replay_dead_letters'] },
    {
      from: null,
      to: 'committed',
      event: 'a message sent by hand is a ticket',
      by: [FINISH, 'intake_queue_delete'],
    },
    { from: null, to: 'committed', event: 'reconcile: a ticket without a claim', by: [RECONCILE] },
    { from: 'queued', to: 'validated', event: 'validation hook says yes', by: [FINISH] },
    {
      from: 'queued',
      to: 'validated',
      event: 'its pool begins to validate',
      by: ['pool_change', 'validation_begins'],
    },
    {
      from: 'queued',
      to: 'committed',
      event: 'ticket',
      by: [FINISH, 'intake_queue_delete', RECONCILE, ENDS],
    },
    {
      from: 'validated',
      to: 'committed',
      event: 'ticket',
      by: [FINISH, 'intake_queue_delete', RECONCILE, ENDS],
    },
    { from: 'queued', to: 'refused', event: 'validation hook says no', by: [FINISH] },
    {
      from: 'queued',
      to: 'released',
      event: 'released',
      by: ['release_own_claim', 'release_claim_as_operator', ENDS],
    },
    { from: 'validated', to: 'released', event: 'released', by: [ENDS] },
    { from: 'dead_letter', to: 'released', event: 'released: given up while it was ending', by: [ENDS] },
    { from: 'queued', to: 'expired', event: 'hold over', by: ['expire_holds', 'expire_due_holds', ENDS] },
    { from: 'dead_letter', to: 'expired', event: 'hold over', by: [ENDS] },
    { from: 'validated', to: 'expired', event: 'hold over: validated while it was ending', by: [ENDS] },
    { from: 'queued', to: 'dead_letter', event: 'given up', by: [FINISH, 'intake_route_to_dlq'] },
    { from: 'validated', to: 'dead_letter', event: 'given up', by: [FINISH, 'intake_route_to_dlq'] },
    { from: 'dead_letter', to: 'queued', event: 'replay', by: ['replay_dead_letters'] },
    { from: 'dead_letter', to: 'validated', event: 'replay', by: ['replay_dead_letters'] },
    { from: 'dead_letter', to: 'discarded', event: 'discard', by: [ENDS] },
    { from: 'dead_letter', to: 'discarded', event: "reconcile: another claim's ticket", by: [RECONCILE] },
    { from: 'dead_letter', to: 'queued', event: 'reconcile: its letter is lost', by: [RECONCILE] },
    { from: 'dead_letter', to: 'committed', event: 'the ledger has its ticket', by: [RECONCILE, ENDS] },
    { from: 'committed', to: 'validated', event: 'reconcile: the ledger has no ticket', by: [RECONCILE] },
    { from: 'queued', to: 'voided', event: 'void', by: [VOID, RECONCILE] },
    { from: 'validated', to: 'voided', event: 'void', by: [VOID] },
    { from: 'committed', to: 'voided', event: 'void', by: [VOID] },
    { from: 'dead_letter', to: 'voided', event: 'void', by: [VOID] },
  ],
};

const PAID_STATES: ReadonlySet<string> = new Set(['queued', 'committed', 'dead_letter', 'voided']);

/** A pool that is paid for has no hooks, and what was paid ends by a void alone. */
function isOfPaid({ from, to, event }: Transition): boolean {
  if (from === null) return event.includes('paid');
  if (from === 'held') return true;
  return PAID_STATES.has(from) && PAID_STATES.has(to) && !event.startsWith('reconcile');
}

/** The steps of the list above that a claim of a pool that is paid for can take, but for repairs. */
export const PAID_CLAIMS: Machine = {
  ...CLAIMS,
  page: 'docs/paid_tickets.md',
  mark: 'paid claims',
  transitions: CLAIMS.transitions.filter(isOfPaid),
};
