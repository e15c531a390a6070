// What the console draws, every two seconds: made of one sample of each database and what was seen before. Pure.

/** What public.live_sample answers; public.take_sample adds what is optional here. */
export interface IntakeLook {
  /** When it was sampled, by the clock of the database. */
  readonly sampled_ms?: number;
  /** How long the oldest hold has lasted. */
  readonly hold_oldest_sec?: number | null;
  /** Messages ever put on the queue. */
  readonly enqueued: number;
  readonly queue_depth: number;
  readonly oldest_msg_sec: number | null;
  readonly dlq_depth: number;
  readonly inbox: InboxLevel;
  readonly orders: OrderLevel;
  readonly pools: readonly LivePool[];
  /** Connections that they hold. */
  readonly bridge_workers: number;
  /** Where there are several: which of them answer. */
  readonly cells?: readonly CellSeen[];
  readonly troubles?: readonly RawTrouble[];
  readonly issues?: OpenIssues;
}

/** What audit.open_issues answers. */
export interface OpenIssues {
  readonly open: number;
  /** Those that were seen last. */
  readonly newest: readonly OpenIssue[];
}

/** Without its error, which may name a user: samples are not erased. */
export interface OpenIssue {
  readonly id: string;
  readonly kind: string;
  readonly lane: string | null;
  readonly type: string;
  readonly failures: number;
  readonly seen_ms: number;
}

/** A row of audit.troubles: a target that workers leave alone, or an endpoint whose secret a server misses. */
export interface RawTrouble {
  readonly kind: 'breaker' | 'secret';
  readonly subject: string;
  /** What is known of the cause. */
  readonly why: string | null;
  readonly began_ms: number;
}

export interface CellSeen {
  readonly name: string;
  readonly ok: boolean;
}

/** What intake.inbox_level answers. */
export interface InboxLevel {
  /** Deliveries ever accepted. */
  readonly accepted: number;
  readonly waiting: number;
  readonly oldest_sec: number | null;
  readonly dead_letters: number;
  /** How old the copy of endpoints and sites is; null where there is none. */
  readonly doors_age_sec: number | null;
}

/** What intake.order_level answers: orders of pools that are paid for. */
export interface OrderLevel {
  /** Their hold runs, or waits for Stripe. */
  readonly held: number;
  /** A paid session is on its way. */
  readonly paying: number;
  /** They hold their seats longer than hold and grace allow, or are paid and undecided for more than a minute. */
  readonly past_bound: number;
  /** How long the oldest of those is past its bound. */
  readonly past_bound_sec: number | null;
  /** Sessions at Stripe that have to be closed or looked at: they are due, or were tried before. */
  readonly to_close: number;
}

/** What public.ledger_order_metrics answers; each is counted up to 10000. */
export interface OutboxLevel {
  readonly due: number;
  readonly oldest_sec: number;
  /** That can never be carried, until an operator lets them be tried again. */
  readonly dead_letters: number;
}

export interface LedgerOrderLevel {
  /** What the courier has to carry. */
  readonly outbox: Readonly<Record<'settle' | 'void', OutboxLevel>>;
  readonly refunds: Readonly<Record<'due' | 'review' | 'failed', number>>;
  /** How long the oldest due one has been owed. */
  readonly refunds_oldest_sec: number;
  /** Refunds that are held back because too many were owed at once. */
  readonly braked: number;
  /** Of the last hour. */
  readonly decisions: Readonly<Record<'funds' | 'refund' | 'void' | 'ignored', number>>;
}

export interface PoolLevel {
  readonly pool_id: string;
  readonly capacity: number;
  /** The three are null while the pool's cache is lost. */
  readonly available: number | null;
  readonly reserved: number | null;
  readonly consumed: number | null;
  /** Where there are several cells: the one that it lives in. */
  readonly cell?: string;
}

export interface LivePool extends PoolLevel {
  /** Its messages on the queue; null while the pool's cache is lost. */
  readonly waiting: number | null;
}

/** What public.ledger_sample answers; public.take_sample adds what is optional here. */
export interface LedgerLook {
  readonly sampled_ms?: number;
  /** From claim to ticket, of the tickets of the last ten seconds. */
  readonly latency?: { readonly p50_sec: number | null; readonly p99_sec: number | null };
  readonly tickets: number;
  readonly webhooks: {
    readonly backlog: number;
    readonly oldest_sec: number | null;
    readonly dead_letters: number;
    /** Payments that moved money while no event names their user. */
    readonly payments_without_user: number;
    /** Payments with a dispute that says that money moved and not how much. */
    readonly silent_disputes: number;
    /** Events ever given a number. */
    readonly recorded: number;
  };
  readonly calls: number;
  readonly orders: LedgerOrderLevel;
  /** Connections that they hold. */
  readonly webhook_workers: number;
  readonly troubles?: readonly RawTrouble[];
  readonly issues?: OpenIssues;
}

/** A database as it was seen. Without a look it did not answer in time. */
export interface Seen<Look> {
  readonly look?: Look;
  readonly ms: number;
}

export interface DatabaseSeen {
  readonly ok: boolean;
  readonly ms: number;
  /** While it does not answer: since when. */
  readonly away_since?: string;
}

export type Trouble = Omit<RawTrouble, 'began_ms'> & { readonly since: string };

/** Null is "not known": the database is down, or there is nothing to compare with yet. */
export interface LiveSample {
  readonly at: string;
  readonly claims_total: number | null;
  readonly claims_per_sec: number | null;
  readonly queue_depth: number | null;
  readonly oldest_msg_sec: number | null;
  readonly drain_per_sec: number | null;
  /** Until the queue is empty, at the pace of the last 10 seconds; null while it grows. */
  readonly eta_sec: number | null;
  readonly ledger_total: number | null;
  readonly commits_per_sec: number | null;
  readonly dlq_depth: number | null;
  readonly hold_oldest_sec: number | null;
  /** From claim to ticket, of the tickets of the last ten seconds. */
  readonly ticket_p50_sec: number | null;
  readonly ticket_p99_sec: number | null;
  readonly webhooks: {
    readonly backlog: number | null;
    readonly oldest_sec: number | null;
    readonly dead_letters: number | null;
    readonly per_sec: number | null;
  };
  readonly inbox: {
    readonly waiting: number | null;
    readonly oldest_sec: number | null;
    readonly dead_letters: number | null;
  };
  readonly orders: {
    readonly past_bound: number | null;
    readonly outbox_oldest_sec: number | null;
    /** In review, or refused by Stripe: an operator decides. */
    readonly refunds_waiting: number | null;
    readonly is_braked: boolean | null;
  };
  readonly calls_per_sec: number | null;
  readonly pools: readonly LivePool[] | null;
  /** Connections that workers hold; 0 means that no worker runs. */
  readonly workers: { readonly bridge: number | null; readonly webhook: number | null };
  /** What goes on and waits for a person, the oldest first. */
  readonly troubles: readonly Trouble[] | null;
  readonly issues: OpenIssues | null;
  readonly db1: DatabaseSeen;
  readonly db2: DatabaseSeen;
  /** The cells of the intake, where there are several. */
  readonly cells?: readonly CellSeen[];
}

/** Older than this, a look says nothing about the pace any more. */
const PACE_MS = 10_000;

interface Past<Look> {
  readonly atMs: number;
  readonly look: Look;
}

/** The newest that is older than this. Servers share samples: one may see the same twice. */
function lastBefore<Look>(past: readonly Past<Look>[], atMs: number): Past<Look> | undefined {
  return past.findLast((one) => one.atMs < atMs);
}

/** Adds a look, and forgets those that are too old. */
function remember<Look>(past: Past<Look>[], atMs: number, look: Look | undefined): void {
  while (past[0] !== undefined && past[0].atMs < atMs - PACE_MS) past.shift();
  if (look !== undefined && (past.at(-1)?.atMs ?? -1) < atMs) past.push({ atMs, look });
}

export class SampleMaker {
  readonly #intake: Past<IntakeLook>[] = [];
  readonly #ledger: Past<LedgerLook>[] = [];

  make(atMs: number, intake: Seen<IntakeLook>, ledger: Seen<LedgerLook>): LiveSample {
    const flow = this.#flow(intake.look?.sampled_ms ?? atMs, intake.look);
    const effects = this.#effects(ledger.look?.sampled_ms ?? atMs, ledger.look);
    return {
      at: new Date(atMs).toISOString(),
      ...flow,
      ...effects,
      orders: ordersOf(intake.look?.orders, ledger.look?.orders),
      workers: {
        bridge: intake.look?.bridge_workers ?? null,
        webhook: ledger.look?.webhook_workers ?? null,
      },
      troubles: troublesOf([intake.look, ledger.look]),
      issues: issuesOf([intake.look?.issues, ledger.look?.issues]),
      db1: { ok: intake.look !== undefined, ms: Math.round(intake.ms) },
      db2: { ok: ledger.look !== undefined, ms: Math.round(ledger.ms) },
      ...(intake.look?.cells && { cells: intake.look.cells }),
    };
  }

  #flow(atMs: number, look: IntakeLook | undefined) {
    const past = this.#intake;
    remember(past, atMs, undefined);
    const last = lastBefore(past, atMs);
    const enqueued = look && last && look.enqueued - last.look.enqueued;
    const drained = look && last && (enqueued ?? 0) - (look.queue_depth - last.look.queue_depth);
    const eta_sec = look ? etaOf(look, past[0], atMs) : null;
    remember(past, atMs, look);
    return {
      claims_total: look?.enqueued ?? null,
      claims_per_sec: rate(enqueued, last, atMs),
      queue_depth: look?.queue_depth ?? null,
      oldest_msg_sec: look?.oldest_msg_sec ?? null,
      drain_per_sec: rate(drained, last, atMs),
      eta_sec,
      dlq_depth: look?.dlq_depth ?? null,
      hold_oldest_sec: look?.hold_oldest_sec ?? null,
      inbox: {
        waiting: look?.inbox.waiting ?? null,
        oldest_sec: look?.inbox.oldest_sec ?? null,
        dead_letters: look?.inbox.dead_letters ?? null,
      },
      pools: look?.pools ?? null,
    };
  }

  #effects(atMs: number, look: LedgerLook | undefined) {
    remember(this.#ledger, atMs, undefined);
    const last = lastBefore(this.#ledger, atMs);
    const since = (now: number | undefined, then: number | undefined) =>
      now === undefined || then === undefined ? undefined : now - then;
    remember(this.#ledger, atMs, look);
    const webhooks = look?.webhooks;
    return {
      ledger_total: look?.tickets ?? null,
      commits_per_sec: rate(since(look?.tickets, last?.look.tickets), last, atMs),
      ticket_p50_sec: look?.latency?.p50_sec ?? null,
      ticket_p99_sec: look?.latency?.p99_sec ?? null,
      webhooks: {
        backlog: webhooks?.backlog ?? null,
        oldest_sec: webhooks?.oldest_sec ?? null,
        dead_letters: webhooks?.dead_letters ?? null,
        per_sec: rate(since(webhooks?.recorded, last?.look.webhooks.recorded), last, atMs),
      },
      calls_per_sec: rate(since(look?.calls, last?.look.calls), last, atMs),
    };
  }
}

function ordersOf(
  intake: OrderLevel | undefined,
  ledger: LedgerOrderLevel | undefined,
): LiveSample['orders'] {
  return {
    past_bound: intake?.past_bound ?? null,
    outbox_oldest_sec:
      ledger === undefined ? null : Math.max(ledger.outbox.settle.oldest_sec, ledger.outbox.void.oldest_sec),
    refunds_waiting: ledger === undefined ? null : ledger.refunds.review + ledger.refunds.failed,
    is_braked: ledger === undefined ? null : ledger.braked > 0,
  };
}

/** Workers tell the first database that answers, so two databases may have the same. */
function troublesOf(looks: readonly (IntakeLook | LedgerLook | undefined)[]): LiveSample['troubles'] {
  if (looks.every((look) => look === undefined)) return null;
  const bySubject = new Map<string, RawTrouble>();
  for (const trouble of looks.flatMap((look) => look?.troubles ?? [])) {
    const key = `${trouble.kind} ${trouble.subject}`;
    const known = bySubject.get(key);
    bySubject.set(key, known === undefined || trouble.began_ms < known.began_ms ? trouble : known);
  }
  return [...bySubject.values()]
    .sort((a, b) => a.began_ms - b.began_ms)
    .map(({ began_ms, ...trouble }) => ({ ...trouble, since: new Date(began_ms).toISOString() }));
}

const MOST_ISSUES = 5;

/** Of several databases. Cells may have the same issue: it is named once, and counted once where it is among the newest of each. */
export function issuesOf(all: readonly (OpenIssues | undefined)[]): OpenIssues | null {
  const known = all.filter((issues) => issues !== undefined);
  if (known.length === 0) return null;
  const newest = known.flatMap((issues) => issues.newest).sort((a, b) => b.seen_ms - a.seen_ms);
  const named = newest.filter(({ id }, at) => newest.findIndex((one) => one.id === id) === at);
  const seenTwice = newest.length - named.length;
  return {
    open: known.reduce((sum, { open }) => sum + open, 0) - seenTwice,
    newest: named.slice(0, MOST_ISSUES),
  };
}

/** Never negative: a counter that went back was reset, by a crash or by hand. */
function rate(change: number | undefined, since: { atMs: number } | undefined, atMs: number): number | null {
  if (change === undefined || since === undefined || atMs <= since.atMs) return null;
  return Math.max(0, Math.round((change * 10_000) / (atMs - since.atMs)) / 10);
}

function etaOf(look: IntakeLook, first: Past<IntakeLook> | undefined, atMs: number): number | null {
  if (look.queue_depth === 0) return 0;
  if (first === undefined) return null;
  const fallen = first.look.queue_depth - look.queue_depth;
  return fallen > 0 ? Math.ceil((look.queue_depth * (atMs - first.atMs)) / fallen / 1_000) : null;
}

/** The columns of a row that charts draw, in their order: a sample without its pools, flat, to be short. */
export const HISTORY_COLUMNS = [
  'at',
  'claims_total',
  'claims_per_sec',
  'queue_depth',
  'oldest_msg_sec',
  'drain_per_sec',
  'eta_sec',
  'dlq_depth',
  'hold_oldest_sec',
  'inbox_waiting',
  'ledger_total',
  'commits_per_sec',
  'ticket_p50_sec',
  'ticket_p99_sec',
  'webhooks_backlog',
  'webhooks_oldest_sec',
  'webhooks_dead_letters',
  'webhooks_per_sec',
  'calls_per_sec',
  'db1_ok',
  'db2_ok',
] as const;

export type HistoryRow = readonly (string | number | boolean | null)[];

export function historyRow(sample: LiveSample): HistoryRow {
  const { webhooks, db1, db2, inbox, cells: _, orders: __, pools: ___, workers: ____, ...others } = sample;
  const { troubles: _____, issues: ______, ...rest } = others;
  const flat: Record<(typeof HISTORY_COLUMNS)[number], string | number | boolean | null> = {
    ...rest,
    inbox_waiting: inbox.waiting,
    webhooks_backlog: webhooks.backlog,
    webhooks_oldest_sec: webhooks.oldest_sec,
    webhooks_dead_letters: webhooks.dead_letters,
    webhooks_per_sec: webhooks.per_sec,
    db1_ok: db1.ok,
    db2_ok: db2.ok,
  };
  return HISTORY_COLUMNS.map((column) => flat[column]);
}
