import type { Machine } from './machine.ts';

const TAKE = ['take_events', 'claim_next_event', 'begin_typescript_event', 'work'];
/** An event that was taken over is a suspect, and is taken alone. */
const TAKE_OVER = ['take_suspect', 'claim_next_event', 'begin_typescript_event', 'work'];
const FINISH = ['finish_event', 'process_events', 'mark_event_result', 'work'];
const INLINE = 'process_event';
/** What Stripe answers counts as what it delivers, at once. */
const PULL = ['record_pulled', 'refund_sent'];

export const EVENTS: Machine = {
  side: 'db2',
  table: 'public.webhook_events',
  column: 'status',
  alsoWhen: `old.status = 'processing' and new.status = 'processing' and old.lease_token <> new.lease_token`,
  page: 'docs/ops/webhook_runbook.md',
  transitions: [
    { from: null, to: 'pending', event: 'recorded', by: ['record_events'] },
    { from: null, to: 'pending', event: 'recorded: an answer of Stripe', by: PULL },
    { from: null, to: 'dead_letter', event: 'recorded: quarantined', by: ['record_events'] },
    { from: null, to: 'skipped', event: 'recorded: not for its endpoint', by: ['record_events'] },
    { from: 'skipped', to: 'pending', event: 'recorded: for this endpoint', by: ['record_events'] },
    { from: 'pending', to: 'processing', event: 'taken', by: TAKE },
    { from: 'failed', to: 'processing', event: 'taken again', by: [...TAKE, 'take_suspect'] },
    { from: 'processing', to: 'processing', event: 'taken over: its lease ran out', by: TAKE_OVER },
    { from: 'processing', to: 'success', event: 'effect', by: [...FINISH, INLINE] },
    { from: 'processing', to: 'skipped', event: 'nothing to do', by: [...FINISH, INLINE] },
    { from: 'processing', to: 'failed', event: 'failed, outage or later', by: [...FINISH, INLINE] },
    { from: 'processing', to: 'dead_letter', event: 'given up', by: [...FINISH, INLINE] },
    {
      from: 'processing',
      to: 'dead_letter',
      event: 'the tenth takeover',
      by: ['take_suspect', 'claim_next_event', 'work'],
    },
    { from: 'processing', to: 'pending', event: 'handed back', by: ['finish_event', 'mark_event_result'] },
    { from: 'pending', to: 'success', event: 'inline', by: [INLINE, ...PULL] },
    { from: 'pending', to: 'skipped', event: 'inline', by: [INLINE, ...PULL] },
    { from: 'pending', to: 'failed', event: 'inline', by: [INLINE] },
    { from: 'pending', to: 'dead_letter', event: 'inline', by: [INLINE] },
    { from: 'failed', to: 'success', event: 'inline', by: [INLINE] },
    { from: 'failed', to: 'skipped', event: 'inline', by: [INLINE] },
    { from: 'failed', to: 'dead_letter', event: 'inline', by: [INLINE] },
    { from: 'failed', to: 'pending', event: 'replay', by: ['replay_events'] },
    { from: 'dead_letter', to: 'pending', event: 'replay', by: ['replay_events'] },
    { from: 'skipped', to: 'pending', event: 'replay', by: ['replay_events'] },
    { from: 'pending', to: 'skipped', event: 'skip', by: ['skip_events'] },
    { from: 'failed', to: 'skipped', event: 'skip', by: ['skip_events'] },
    { from: 'dead_letter', to: 'skipped', event: 'skip', by: ['skip_events'] },
    { from: 'processing', to: 'skipped', event: 'skip: its lease ran out', by: ['skip_events'] },
  ],
};
