// Ends sessions before their seats are free. A session that Stripe says is expired frees its seats; one that was paid keeps them, and
// DB2 is told of it, because its webhook may never come. While Stripe is silent DB1 frees the seats after the pool's grace, and the
// session is still ended here.

import type { Breaker } from '../breaker.ts';
import type { CallFunction } from '../call_function.ts';
import { canWait } from '../failure.ts';
import type { Outcomes, Report } from '../lease_worker.ts';
import { Limiter } from '../limiter.ts';
import type { Clock, Log, Metrics } from '../ports.ts';
import { OrderLane, outagePauseSec } from './lane.ts';
import { PaymentError, type Payments, type PaymentsOf, type Session, type StripeObject } from './ports.ts';

/** A row of public.checkouts. */
export interface CheckoutRow {
  readonly order_id: string;
  readonly n: number;
  /** Whose key it was made with. */
  readonly tenant: string;
  readonly livemode: boolean;
  readonly idempotency_key: string;
  /** What Stripe was, or is to be, asked for. */
  readonly params: StripeObject;
  readonly session_id: string | null;
  readonly url: string | null;
  readonly state: 'creating' | 'open' | 'processing' | 'complete' | 'expired';
  readonly lease_token: string | null;
  readonly attempts: number;
  readonly created_at: string;
}

export interface CloserPorts {
  /** Functions of schema public of one DB1. */
  readonly db1: CallFunction;
  /** The same of DB2. */
  readonly db2: CallFunction;
  readonly paymentsOf: PaymentsOf;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly now: Clock;
}

/** Longer than two calls of Stripe that both give up. */
const LEASE_SEC = 30;
const BATCH = 20;
/** Rows that share a look through Stripe's list. No buyer waits for them, nor can pay, so their lease may be longer. */
const LOST_BATCH = 200;
const LOST_LEASE_SEC = 120;
/** Of rows of the larger batch. Stripe allows a hundred requests a second. */
const CALLS_AT_ONCE = 20;
/** Holds end in seconds. */
const IDLE_MS = 1_000;
const STRIPE = 'Stripe';
const LONGEST_PAUSE_SEC = 300;
/** The courier takes well under a second to decide what was pulled. */
const PULL_PAUSE_SEC = 5;
/** Stripe's clock may be behind ours when it dates a session. */
const CLOCK_MARGIN_MS = 10 * 60 * 1_000;

export class Closer {
  readonly #ports: CloserPorts;
  /**
   * Sessions that are known, and lost ones, whose ids have to be found first. Each kind has its own lane: an outage of Stripe leaves
   * thousands of lost ones, and a payment must not wait until they are found.
   */
  readonly #lanes: readonly OrderLane<CheckoutRow>[];

  constructor(ports: CloserPorts, leaseSec?: number) {
    this.#ports = ports;
    this.#lanes = [
      this.#laneOf('closer', false, BATCH, leaseSec ?? LEASE_SEC),
      this.#laneOf('finder', true, LOST_BATCH, leaseSec ?? LOST_LEASE_SEC),
    ];
  }

  #laneOf(name: string, isLost: boolean, batch: number, leaseSec: number): OrderLane<CheckoutRow> {
    const { db1, now, metrics, log } = this.#ports;
    const calls = new Limiter(CALLS_AT_ONCE);
    const lane: OrderLane<CheckoutRow> = new OrderLane<CheckoutRow>({
      name,
      targets: [STRIPE],
      batch,
      idleMs: IDLE_MS,
      take: (limit) =>
        db1<CheckoutRow>('take_closing', { p_limit: limit, p_lease_sec: leaseSec, p_lost: isLost }),
      work: (row, signal) => this.#close(row, { calls, breaker: lane.targets.of(STRIPE).breaker }, signal),
      now,
      metrics,
      log,
    });
    return lane;
  }

  /** Until nothing is due any more. Throws when DB1 cannot be read. */
  async drain(signal: AbortSignal): Promise<Report> {
    const outcomes: Outcomes = {};
    let [total, pausedUntilMs] = [0, 0];
    const drains = this.#lanes.map((lane) => lane.drain(signal));
    // When it returns no lane has rows in hand, also where one failed.
    await Promise.allSettled(drains);
    for (const report of await Promise.all(drains)) {
      for (const [outcome, count] of Object.entries(report.outcomes))
        outcomes[outcome] = (outcomes[outcome] ?? 0) + count;
      total += report.total;
      pausedUntilMs = Math.max(pausedUntilMs, report.pausedUntilMs);
    }
    return { total, outcomes, pausedUntilMs };
  }

  async run(signal: AbortSignal, onGroup?: (outcomes: Outcomes) => void): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.run(signal, onGroup)));
  }

  wake(): void {
    for (const lane of this.#lanes) lane.wake();
  }

  async #close(row: CheckoutRow, way: Way, signal: AbortSignal): Promise<string> {
    if (signal.aborted) return this.#later(row, 'handed_back', 0);
    try {
      const payments = limited(await this.#ports.paymentsOf(row.tenant, row.livemode), way);
      const session = await this.#sessionOf(row, payments);
      const state = session === undefined ? 'expired' : await stateOf(session, payments);
      way.breaker.succeeded();
      // What is pulled is pulled once: it has to say that it is paid.
      const isEarly = row.state === 'complete' && session?.isPaid === false;
      if (state === undefined || isEarly) return await this.#later(row, 'open', 1);
      if (row.state === 'complete' && session !== undefined) return await this.#pull(row, session);
      return (await this.#note(row, state, session?.paymentIntent ?? null)) ? state : 'lost_lease';
    } catch (error) {
      const isAway = error instanceof PaymentError ? error.kind === 'outage' : canWait(error);
      if (!isAway) this.#tell(row, error);
      // A database that is away, or the key of one tenant, says nothing about Stripe.
      else if (error instanceof PaymentError) way.breaker.outage();
      const outcome = error instanceof PaymentError ? error.kind : isAway ? 'outage' : 'failed';
      return this.#later(row, outcome, isAway ? outagePauseSec(row.attempts) : this.#pause(row));
    }
  }

  /** The session as Stripe has it now, ended where it was open; undefined where there is none and never will be. */
  async #sessionOf(row: CheckoutRow, payments: Payments): Promise<Session | undefined> {
    let id = row.session_id;
    if (id === null) {
      const made = await makeOrFind(row, row.created_at, payments);
      if (made instanceof PaymentError) return undefined;
      await this.#ports.db1('checkout_created', {
        p_order_id: row.order_id,
        p_n: row.n,
        p_session_id: made.id,
        p_url: made.url,
      });
      id = made.id;
    }
    const isOver = row.state === 'processing' || row.state === 'complete';
    return isOver ? payments.showSession(id) : payments.expireSession(id);
  }

  /** One that was paid keeps its seats from here on, and is taken again to be pulled, until its payment is decided. */
  async #note(row: CheckoutRow, state: ClosedState, paymentIntent: string | null): Promise<boolean> {
    const [closed] = await this.#ports.db1<{ close_checkout: boolean }>('close_checkout', {
      p_order_id: row.order_id,
      p_n: row.n,
      p_token: row.lease_token,
      p_state: state,
      p_payment_intent: paymentIntent,
    });
    return closed?.close_checkout === true;
  }

  /** DB2 is told of the payment as a webhook would tell it. Where its endpoint does not let it have its effect, an operator has to. */
  async #pull(row: CheckoutRow, session: Session): Promise<string> {
    const { order_id, tenant } = row;
    const [told] = await this.#ports.db2<{ record_pulled: string }>('record_pulled', {
      p_tenant: tenant,
      p_object: session.object,
    });
    const status = told?.record_pulled ?? 'failed';
    if (status !== 'success')
      this.#ports.log.error('a session is paid, and its payment has no effect yet', {
        order_id,
        tenant,
        event_id: `pull:${session.id}`,
        status,
      });
    const outcome = status === 'success' ? 'pulled' : status;
    return this.#later(row, outcome, Math.max(PULL_PAUSE_SEC, this.#pause(row)));
  }

  async #later(
    { order_id, n, lease_token }: CheckoutRow,
    outcome: string,
    delaySec: number,
  ): Promise<string> {
    await this.#ports.db1('checkout_later', {
      p_order_id: order_id,
      p_n: n,
      p_token: lease_token,
      p_delay_sec: delaySec,
    });
    return outcome;
  }

  #pause({ attempts }: CheckoutRow): number {
    return Math.min(LONGEST_PAUSE_SEC, 2 ** Math.min(attempts, 10));
  }

  #tell({ order_id, n }: CheckoutRow, error: unknown): void {
    this.#ports.log.error('a checkout session cannot be closed yet', { order_id, n, cause: error });
  }
}

/** How the rows of one lane get to Stripe. */
interface Way {
  readonly calls: Limiter;
  readonly breaker: Breaker;
}

/** Some calls at once, none once Stripe was found down. Looks through its list are shared already. */
function limited(payments: Payments, { calls, breaker }: Way): Payments {
  const limit = <Answer>(call: () => Promise<Answer>): Promise<Answer> =>
    calls.run(() => {
      if (breaker.openUntilMs > 0) throw new PaymentError('outage', 'Stripe was down a moment ago');
      return call();
    });
  return {
    ...payments,
    createSession: (params, key) => limit(() => payments.createSession(params, key)),
    showSession: (id) => limit(() => payments.showSession(id)),
    expireSession: (id) => limit(() => payments.expireSession(id)),
    standingOf: (intent) => limit(() => payments.standingOf(intent)),
  };
}

type ClosedState = 'expired' | 'processing' | 'complete';

/** Undefined where it is still open. */
async function stateOf(session: Session, payments: Payments): Promise<ClosedState | undefined> {
  if (session.status === 'expired') return 'expired';
  if (session.status === 'open') return undefined;
  if (session.isPaid) return 'complete';
  const { paymentIntent } = session;
  if (paymentIntent === null) return 'expired';
  // Asked after the session: a payment that was made between the two answers is paid, and its webhook may never come.
  const standing = await payments.standingOf(paymentIntent);
  return standing === 'paid' ? 'complete' : standing === 'pending' ? 'processing' : 'expired';
}

/**
 * The session of a checkout that was begun at `since` and whose answer was lost; what Stripe said where there is none and never will be.
 * The same request with the same key makes it, or gives it again. Where Stripe refuses that (it is too late to make one, or the key
 * stands for another request) or the key repeats a failure, the list says whether there is one.
 */
export async function makeOrFind(
  row: Pick<CheckoutRow, 'order_id' | 'n' | 'params' | 'idempotency_key'>,
  since: string,
  payments: Payments,
): Promise<Session | PaymentError> {
  try {
    return await payments.createSession(row.params, row.idempotency_key);
  } catch (error) {
    if (!(error instanceof PaymentError) || (error.kind !== 'refused' && error.kind !== 'burnt')) throw error;
    const found = await payments.findSession(`${row.order_id}:${row.n}`, Date.parse(since) - CLOCK_MARGIN_MS);
    return found ?? error;
  }
}
