// What operators do with work that will not succeed by retrying, of both kinds.

import { post } from './api.ts';
import { claimPlace, eventPlace, failurePlace, letterPlace } from './links.ts';
import type {
  ClaimRecord,
  DeadLetterResult,
  EventResult,
  InboxResult,
  Issue,
  IssueResult,
  RefundResult,
  VoidResult,
} from './shapes.ts';

export interface Outcome {
  readonly id: string;
  readonly outcome: string;
}

export interface Act {
  readonly verb: string;
  /** What it is done to, and how several are called where that is not with an s. */
  readonly noun: string;
  readonly nouns?: string;
  /** What it does, for an operator who does it for the first time. */
  readonly about: string;
  readonly isDanger: boolean;
  /** What it asks of the server. */
  readonly route: string;
  /** Where it is written down: the database, and what the audit log calls the thing. */
  readonly audit: { readonly db: 1 | 2; subjectOf(id: string): string };
  /** Where what it is done to can be looked at. */
  placeOf?(id: string): string | undefined;
  /** What speaks against it now. */
  readonly caution?: string;
  /** The server cannot say beforehand what it would do. */
  readonly hasNoDryRun?: true;
  /** What can be wanted beside it, wanted unless the operator says no. */
  readonly option?: string;
  /** `hasOption` is false where there is none. */
  run(ids: readonly string[], reason: string, isDryRun: boolean, hasOption: boolean): Promise<Outcome[]>;
}

/** A dry run needs no reason. */
const because = (reason: string) => reason !== '' && { reason };

const OF_LETTERS: Act['audit'] = { db: 1, subjectOf: (id) => `dead letter ${id}` };
const OF_EVENTS: Act['audit'] = { db: 2, subjectOf: (id) => `webhook event ${id}` };
const OF_REFUNDS: Act['audit'] = { db: 2, subjectOf: (id) => `refund ${id}` };

const letterRun =
  (path: string): Act['run'] =>
  async (ids, reason, isDryRun) => {
    const { results } = await post<{ results: DeadLetterResult[] }>(path, {
      msg_ids: ids.map(Number),
      ...because(reason),
      dry_run: isDryRun,
    });
    return results.map(({ msg_id, outcome }) => ({ id: String(msg_id), outcome }));
  };

const eventRun =
  (path: string): Act['run'] =>
  async (ids, reason, isDryRun) =>
    (await post<{ results: EventResult[] }>(path, { ids, ...because(reason), dry_run: isDryRun })).results;

const refundRun =
  (path: string): Act['run'] =>
  async (ids, reason, isDryRun) =>
    (await post<{ results: RefundResult[] }>(path, { ids, ...because(reason), dry_run: isDryRun })).results;

export const LETTER_ACTS: readonly Act[] = [
  {
    verb: 'Replay',
    noun: 'dead letter',
    about:
      'Each goes back on the queue, with all its attempts. A slot that was sold meanwhile is not sold twice.',
    isDanger: false,
    route: 'POST /admin/dlq/replay',
    audit: OF_LETTERS,
    placeOf: letterPlace,
    run: letterRun('/admin/dlq/replay'),
  },
  {
    verb: 'Discard',
    noun: 'dead letter',
    about: 'Each claim ends here and its slot goes back on sale. The letters stay in the archive.',
    isDanger: true,
    route: 'POST /admin/dlq/discard',
    audit: OF_LETTERS,
    placeOf: letterPlace,
    run: letterRun('/admin/dlq/discard'),
  },
];

const inboxRun =
  (path: string): Act['run'] =>
  async (ids, reason) => {
    const body = { msg_ids: ids.map(Number), ...because(reason) };
    const { results } = await post<{ results: InboxResult[] }>(path, body);
    return results.map(({ msg_id, outcome }) => ({ id: String(msg_id), outcome }));
  };

const OF_INBOX: Act['audit'] = { db: 1, subjectOf: (id) => `inbox dead letter ${id}` };

export const INBOX_ACTS: readonly Act[] = [
  {
    verb: 'Replay',
    noun: 'delivery',
    nouns: 'deliveries',
    about:
      'Each goes back into the inbox, with all its attempts. What the ledger has already is not recorded twice.',
    isDanger: false,
    route: 'POST /admin/webhooks/inbox/replay',
    audit: OF_INBOX,
    hasNoDryRun: true,
    run: inboxRun('/admin/webhooks/inbox/replay'),
  },
  {
    verb: 'Discard',
    noun: 'delivery',
    nouns: 'deliveries',
    about:
      'Each is given up: its sender was told that it was accepted, and it takes no effect. It stays in the archive.',
    isDanger: true,
    route: 'POST /admin/webhooks/inbox/discard',
    audit: OF_INBOX,
    hasNoDryRun: true,
    run: inboxRun('/admin/webhooks/inbox/discard'),
  },
];

export const EVENT_ACTS: readonly Act[] = [
  {
    verb: 'Replay',
    noun: 'event',
    about:
      'A worker processes each again, from its first attempt. An event that took effect has no second effect.',
    isDanger: false,
    route: 'POST /admin/webhooks/events/replay',
    audit: OF_EVENTS,
    placeOf: eventPlace,
    run: eventRun('/admin/webhooks/events/replay'),
  },
  {
    verb: 'Skip',
    noun: 'event',
    about: 'Each is left alone for good, without its effect, until an operator replays it.',
    isDanger: true,
    route: 'POST /admin/webhooks/events/skip',
    audit: OF_EVENTS,
    placeOf: eventPlace,
    run: eventRun('/admin/webhooks/events/skip'),
  },
];

export const REFUND_ACTS: readonly Act[] = [
  {
    verb: 'Send',
    noun: 'refund',
    about: 'Each is paid back at Stripe, once. A worker sends it within a few seconds.',
    isDanger: false,
    route: 'POST /admin/refunds/send',
    audit: OF_REFUNDS,
    run: refundRun('/admin/refunds/send'),
  },
  {
    verb: 'Skip',
    noun: 'refund',
    about:
      'Each is closed and the money stays. Use it for money that was paid back in another way, or is not owed.',
    isDanger: true,
    route: 'POST /admin/refunds/skip',
    audit: OF_REFUNDS,
    run: refundRun('/admin/refunds/skip'),
  },
];

/** Takes tickets back, also of claims that are on their way to one. */
export const VOID: Act = {
  verb: 'Void',
  noun: 'ticket',
  about: 'Each ticket is void for good, and its seat goes on sale again as soon as both databases know.',
  isDanger: true,
  route: 'POST /admin/claims/void',
  audit: { db: 2, subjectOf: (id) => `claim ${id}` },
  option: 'Pay back what they cost',
  placeOf: claimPlace,
  async run(ids, reason, isDryRun, refund) {
    const body = { claim_ids: ids, refund, ...because(reason), dry_run: isDryRun };
    const { results } = await post<{ results: VoidResult[] }>('/admin/claims/void', body);
    return results.map(({ claim_id, outcome }) => ({ id: claim_id, outcome }));
  },
};
/** From these a ticket can be taken back; a dead letter is discarded instead, where nothing was paid for it. */
export const VOIDABLE: ReadonlySet<string> = new Set(['queued', 'validated', 'committed', 'dead_letter']);

/** Gives the slot of one claim back, as its buyer would. */
export const RELEASE: Act = {
  verb: 'Release',
  noun: 'claim',
  about: 'The claim ends and its slot goes back on sale, as if its buyer had given it back.',
  isDanger: true,
  route: 'POST /admin/claims/:claim/release',
  audit: { db: 1, subjectOf: (id) => `claim ${id}` },
  hasNoDryRun: true,
  async run(ids, reason) {
    const released = async (id: string): Promise<Outcome> => {
      const { ending } = await post<ClaimRecord>(`/admin/claims/${id}/release`, because(reason) || {});
      return { id, outcome: ending ? 'ending' : 'released' };
    };
    return Promise.all(ids.map(released));
  },
};
export const RELEASABLE: ReadonlySet<string> = new Set(['held', 'queued', 'validated']);

/** While a handler fails event after event, as far as workers know: it may be mended, and not tried since. */
export function cautious(acts: readonly Act[], handler: string): readonly Act[] {
  const caution = `${handler} failed at its last try: what you replay fails again until it is mended.`;
  return acts.map((act) => (act.verb === 'Replay' ? { ...act, caution } : act));
}

/** On an issue as a whole. What its failures become is told one by one; what is written down is that of the issue. */
export function issueActs({ id, kind, state }: Issue, canReplay = true): readonly Act[] {
  const audit: Act['audit'] = {
    db: kind === 'claim' || kind === 'delivery' ? 1 : 2,
    subjectOf: () => `issue ${id}`,
  };
  const path = `/admin/issues/${id}`;
  const replay: Act = {
    verb: 'Replay',
    noun: 'issue',
    about:
      'All that failed alike goes round again, up to 1,000 at a time, and the issue is resolved. It opens again if it comes back. A dry run shows the plan.',
    isDanger: false,
    route: 'POST /admin/issues/:issue/replay',
    audit,
    placeOf: (failure) => failurePlace(kind, failure),
    async run(_, reason, isDryRun) {
      const body = { ...because(reason), dry_run: isDryRun };
      return (await post<{ results: IssueResult[] }>(`${path}/replay`, body)).results;
    },
  };
  const resolve: Act = {
    verb: 'Resolve',
    noun: 'issue',
    about: 'The issue is resolved until it comes back. What failed stays where it is.',
    isDanger: false,
    route: 'POST /admin/issues/:issue/resolve',
    audit,
    async run(_, reason, isDryRun) {
      if (isDryRun) return [{ id, outcome: 'would_resolve' }];
      await post<Issue>(`${path}/resolve`, because(reason) || {});
      return [{ id, outcome: 'resolved' }];
    },
  };
  return [...(canReplay ? [replay] : []), ...(state === 'resolved' ? [] : [resolve])];
}
