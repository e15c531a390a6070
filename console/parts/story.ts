// The one timeline: what happened to a claim, its message, its ticket, its order and its money, whichever page tells it. What a step is
// called, how it looks, and what of it is news.

import { moneyOf } from '../../db1/supabase/functions/_shared/money.ts';
import type { TimelineEvent } from '../lib/shapes.ts';

/** As the timeline draws it. */
export interface StoryStep {
  at: string | null;
  what: string;
  tone?: 'good' | 'bad' | 'wait';
  detail: Readonly<Record<string, unknown>>;
  note: string | undefined;
}

const TONES: Readonly<Record<string, StoryStep['tone']>> = {
  committed: 'good',
  dead_letter: 'bad',
  refused: 'bad',
  queued: 'wait',
  ending: 'wait',
  decided_funds: 'good',
  ticket: 'good',
  refund_done: 'good',
  decided_refund: 'bad',
  decided_void: 'bad',
  ticket_voided: 'bad',
  refund_failed: 'bad',
  held: 'wait',
  refund_due: 'wait',
  refund_review: 'wait',
  settle_waits: 'wait',
  void_waits: 'wait',
  settle_dead_letter: 'bad',
  void_dead_letter: 'bad',
  ledger_unreachable: 'wait',
  intake_unreachable: 'wait',
};

/** What happened, in words for a reader who follows one thing from end to end. */
const NAMES: Readonly<Record<string, string>> = {
  dead_letter_replay: 'replayed by an operator',
  dead_letter_discard: 'discarded by an operator',
  claim_release: 'given back by an operator',
  // As older versions wrote them; an import takes the audit log along as it is.
  dlq_replay: 'replayed by an operator',
  dlq_discard: 'discarded by an operator',
  held: 'seats held',
  checkout: 'checkout at Stripe',
  decided_funds: 'payment accepted for these seats',
  decided_refund: 'payment goes back',
  decided_void: 'payment taken back before it bought anything',
  other_seats: 'late payment: other seats',
  event: 'event from the provider',
  payment: 'payment, as it stands',
  settle_waits: 'payment waits for its decision',
  void_waits: 'void is on its way',
  settle_dead_letter: 'payment cannot be decided',
  void_dead_letter: 'void cannot be carried out',
  refund_due: 'refund owed',
  refund_review: 'refund waits for an operator',
  refund_sent: 'refund sent',
  refund_done: 'refunded',
  refund_failed: 'refund failed',
  refund_skipped: 'refund closed by an operator',
  ticket: 'tickets',
  ticket_voided: 'tickets void',
  used: 'used at the entrance',
  ticket_void: 'void asked for by an operator',
  refund_send: 'refund sent by an operator',
  refund_skip: 'refund closed by an operator',
  payment_resettle: 'decided again, by an operator',
  payment_name_user: 'user named by an operator',
  credit_payment: 'credited',
  credit_refund: 'refund debited',
  credit_dispute: 'dispute booked',
  credit_purchase: 'tickets bought',
  credit_purchase_void: 'tickets taken back',
  credit_forfeit: 'kept by the seller',
  asked_settle: 'the intake was asked what it is for',
  asked_void: 'the intake was asked to take back what it bought',
};

const NOTES: Readonly<Record<string, string>> = {
  ending: 'A worker may still carry it, so the ledger is told first. It holds its slot until then.',
  refund_review: 'Send or skip it on the page of refunds.',
  ledger_unreachable: 'The ledger does not answer, so what only it knows is missing right now.',
  intake_unreachable: 'The intake does not answer, so what only it knows is missing right now.',
};

const AMOUNTS = /^(amount|captured|refunded|disputed)$/;

/** Deliveries and attempts stand side by side, and differ after an outage. */
function noteOf({ what, detail }: TimelineEvent): string | undefined {
  const isUncounted =
    what === 'queued' && Number(detail.deliveries) - Number(detail.is_held) > Number(detail.attempts);
  return isUncounted
    ? 'Only a delivery that failed is an attempt. One that met an outage, or whose worker was lost, is not.'
    : NOTES[what];
}

/** Without what stands beside it already. `names` are those of one page. */
export function storySteps(
  timeline: readonly TimelineEvent[],
  known: Readonly<Record<string, unknown>>,
  names: Readonly<Record<string, string>> = {},
): StoryStep[] {
  return timeline.map((event) => {
    const { at, what, detail } = event;
    const currency = detail.currency ?? known.currency;
    const news = Object.entries(detail)
      .filter(([name, value]) => known[name] !== value)
      .map(([name, value]) => [
        name,
        AMOUNTS.test(name) && typeof value === 'number' && currency
          ? moneyOf(value, String(currency))
          : value,
      ]);
    const tone = TONES[what];
    return {
      at,
      what: names[what] ?? NAMES[what] ?? what,
      detail: Object.fromEntries(news),
      note: noteOf(event),
      ...(tone && { tone }),
    };
  });
}

/** The dead letter that a claim waits in, as its timeline tells; undefined where it is in none. */
export function letterOf(timeline: readonly TimelineEvent[]): string | undefined {
  const letter = timeline.findLast(({ what }) => what === 'dead_letter');
  return letter === undefined ? undefined : String(letter.detail.msg_id);
}
