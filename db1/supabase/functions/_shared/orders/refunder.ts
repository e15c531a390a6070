// Sends what we owe. The row is there before Stripe is asked, with the key that makes the refund one. Stripe forgets keys after a day,
// so each try looks for the refund first, the first one too: DB2 may have been restored to a moment before the refund was sent. That
// costs one GET a refund. What Stripe answers is told to DB2 in the transaction that marks the row.

import type { CallFunction } from '../call_function.ts';
import { canWait, codeOf, isUnavailable } from '../failure.ts';
import type { Outcomes, Report } from '../lease_worker.ts';
import type { Clock, Log, Metrics } from '../ports.ts';
import { textOf } from '../text.ts';
import { OrderLane, outagePauseSec } from './lane.ts';
import { PaymentError, type Payments, type PaymentsOf, type StripeObject } from './ports.ts';

/** A row of public.refunds_take. */
export interface DueRefund {
  readonly id: string;
  readonly token: string;
  readonly tenant: string;
  readonly payment: string;
  readonly amount: number;
  readonly refund_key: string;
  /** This one included. */
  readonly tries: number;
}

export interface RefunderPorts {
  /** Functions of schema public of DB2. */
  readonly db2: CallFunction;
  readonly paymentsOf: PaymentsOf;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly now: Clock;
}

/** Longer than the calls of Stripe that one refund may take, each of which gives up after ten seconds. */
const LEASE_SEC = 60;
const BATCH = 10;
/** A refund takes days to arrive. */
const IDLE_MS = 5_000;
const STRIPE = 'Stripe';
const LEDGER = 'DB2';

export class Refunder {
  readonly #ports: RefunderPorts;
  readonly #lane: OrderLane<DueRefund>;

  constructor(ports: RefunderPorts, leaseSec = LEASE_SEC) {
    const { db2, now, metrics, log } = ports;
    this.#ports = ports;
    this.#lane = new OrderLane<DueRefund>({
      name: 'refunder',
      targets: [STRIPE, LEDGER],
      batch: BATCH,
      idleMs: IDLE_MS,
      take: (limit) => db2<DueRefund>('refunds_take', { p_limit: limit, p_lease_sec: leaseSec }),
      work: (refund, signal) => this.#send(refund, signal),
      now,
      metrics,
      log,
    });
  }

  /** Until nothing is due any more. Throws when DB2 cannot be read. */
  drain(signal: AbortSignal): Promise<Report> {
    return this.#lane.drain(signal);
  }

  run(signal: AbortSignal, onGroup?: (outcomes: Outcomes) => void): Promise<void> {
    return this.#lane.run(signal, onGroup);
  }

  wake(): void {
    this.#lane.wake();
  }

  async #send(due: DueRefund, signal: AbortSignal): Promise<string> {
    if (signal.aborted) return this.#again(due, 'handed_back', 'the worker stops', { delaySec: 0 });
    const { targets } = this.#lane;
    try {
      const payments = await this.#ports.paymentsOf(due.tenant);
      const refund = await this.#refundOf(due, payments);
      // Before ours: with it the sum may be full, and then no ticket of the payment may live.
      await this.#tellOthers(due, payments, refund.id);
      targets.of(STRIPE).breaker.succeeded();
      const state = await this.#told(due, refund);
      targets.of(LEDGER).breaker.succeeded();
      return state;
    } catch (error) {
      return this.#failed(due, error);
    }
  }

  /** Stripe's refund: the one that is there, or a new one. */
  async #refundOf(due: DueRefund, payments: Payments): Promise<StripeObject> {
    const { payment, amount, refund_key: refundKey } = due;
    const known = await findOwn(due, payments);
    if (known !== undefined) return known;
    const idempotencyKey = `sluice:refund:${refundKey}`;
    try {
      return await payments.refund({ payment, amount, refundKey, idempotencyKey });
    } catch (error) {
      if (!(error instanceof PaymentError) || (error.kind !== 'refused' && error.kind !== 'burnt'))
        throw error;
      const own = await findOwn(due, payments);
      if (own !== undefined) return own;
      // Nothing was made with the key, and nothing ever will be: another one cannot make a second refund.
      if (error.kind === 'burnt')
        return payments.refund({ payment, amount, refundKey, idempotencyKey: `${idempotencyKey}:again` });
      // Part of it went back another way: the rest is sent, with a key of its own because it is another request.
      const left = await payments.refundable(payment);
      if (left > 0 && left < amount)
        return payments.refund({
          payment,
          amount: left,
          refundKey,
          idempotencyKey: `${idempotencyKey}:${left}`,
        });
      await this.#tellOthers(due, payments);
      throw error;
    }
  }

  /**
   * The other refunds of the payment, which may never have been told, or only as a sum by its charge: one refund and a sum that
   * was told before it do not add up. Where all of it went back, nothing is owed any more.
   */
  async #tellOthers({ tenant, payment }: DueRefund, payments: Payments, own?: unknown): Promise<void> {
    for (const refund of (await payments.refundsOf(payment)).filter(({ id }) => id !== own))
      await this.#ports.db2('record_pulled', { p_tenant: tenant, p_object: refund });
  }

  async #told({ id, token }: DueRefund, refund: StripeObject): Promise<string> {
    const [row] = await this.#ports.db2<{ refund_sent: string }>('refund_sent', {
      p_id: id,
      p_token: token,
      p_refund: refund,
    });
    return row?.refund_sent ?? 'lost_lease';
  }

  async #failed(due: DueRefund, error: unknown): Promise<string> {
    const { targets } = this.#lane;
    if (!(error instanceof PaymentError)) {
      if (isUnavailable(error)) {
        // The row cannot be put back either. Its lease runs out, and the next try finds the refund.
        targets.of(LEDGER).breaker.outage();
        throw error;
      }
      if (!canWait(error)) this.#tell(due, error);
      return this.#again(due, 'failed', `${codeOf(error)} ${textOf(error)}`.trim());
    }
    if (error.kind === 'outage') {
      targets.of(STRIPE).breaker.outage();
      return this.#again(due, error.kind, error.message, { delaySec: outagePauseSec(due.tries) });
    }
    this.#tell(due, error);
    // A burnt key stays burnt: an operator sends it again, under a new one.
    const isFinal = error.kind === 'refused' || error.kind === 'burnt';
    return this.#again(due, isFinal ? 'refused' : error.kind, error.message, { isFinal });
  }

  async #again(
    { id, token }: DueRefund,
    outcome: string,
    error: string,
    { isFinal = false, delaySec = null }: { isFinal?: boolean; delaySec?: number | null } = {},
  ): Promise<string> {
    await this.#ports.db2('refund_failed', {
      p_id: id,
      p_token: token,
      p_error: error,
      p_is_final: isFinal,
      p_delay_sec: delaySec,
    });
    return outcome;
  }

  #tell({ id }: DueRefund, error: unknown): void {
    this.#ports.log.error('a refund could not be sent', { refund: id, cause: error });
  }
}

async function findOwn(
  { payment, refund_key }: DueRefund,
  payments: Payments,
): Promise<StripeObject | undefined> {
  const refunds = await payments.refundsOf(payment);
  return refunds.find(({ metadata }) => (metadata as StripeObject | null)?.sluice_refund === refund_key);
}
