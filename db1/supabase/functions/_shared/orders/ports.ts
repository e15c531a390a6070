// What paid orders need from the world: Stripe, the ledger (DB2), and the cells (DB1).

import type { CallFunction } from '../call_function.ts';

export type StripeObject = Readonly<Record<string, unknown>>;

/** A Checkout Session, as far as we look at it. */
export interface Session {
  readonly id: string;
  readonly status: 'open' | 'complete' | 'expired';
  readonly isPaid: boolean;
  readonly paymentIntent: string | null;
  /** Where the buyer pays; null once it is not open any more. */
  readonly url: string | null;
  /** As Stripe sent it: what DB2 is told. */
  readonly object: StripeObject;
}

export interface RefundOrder {
  /** The payment intent, or the charge of a payment that has none. */
  readonly payment: string;
  readonly amount: number;
  /** In the metadata of the refund, by which it is found again. */
  readonly refundKey: string;
  readonly idempotencyKey: string;
}

/** `pending`: not made yet, and it may still be. `over`: it will not be. */
export type PaymentStanding = 'paid' | 'pending' | 'over';

/** Stripe, with the key of one tenant. Each of them throws a PaymentError. */
export interface Payments {
  /** Makes a session, or gives the one that the idempotency key has made. */
  createSession(params: StripeObject, idempotencyKey: string): Promise<Session>;
  /** The session with this `metadata.checkout` that was made since. */
  findSession(checkout: string, sinceMs: number): Promise<Session | undefined>;
  showSession(id: string): Promise<Session>;
  /** Ends an open session. One that is not open any more is given as it is. */
  expireSession(id: string): Promise<Session>;
  /** How a payment stands whose session did not say that it is paid. */
  standingOf(paymentIntent: string): Promise<PaymentStanding>;
  /** What of the payment can still be refunded. */
  refundable(payment: string): Promise<number>;
  refund(order: RefundOrder): Promise<StripeObject>;
  /** Newest first. */
  refundsOf(payment: string): Promise<StripeObject[]>;
}

/** Throws a PaymentError of kind `key` where no key can be had, or it is not for this mode. */
export type PaymentsOf = (tenant: string, livemode?: boolean) => Promise<Payments>;

/**
 * `refused`: Stripe says no, and will again. `burnt`: the idempotency key repeats a failure, so that nothing will ever be made with it.
 * `key`: the tenant's key is missing, or may not. `outage`: everything else, and it may pass.
 */
export type PaymentErrorKind = 'refused' | 'burnt' | 'key' | 'outage';

export class PaymentError extends Error {
  override readonly name = 'PaymentError';
  readonly kind: PaymentErrorKind;

  constructor(kind: PaymentErrorKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}

/** The cells as one, for orders: what is asked about an order is asked of the cell that has it. */
export interface OrderCells {
  /** No other cell can have an order. */
  readonly isOne: boolean;
  /**
   * Asks until one knows the order, which is not undefined. Undefined when all cells have answered and none knows it. Throws while
   * one that may know it is away.
   */
  onOrder<Answer>(
    orderId: string,
    ask: (cell: OrderCell) => Promise<Answer | undefined>,
  ): Promise<Answer | undefined>;
  /** The cell that the id leads to: what is worked on together, and where an order is noted that no cell knows. */
  likely(orderId: string): OrderCell;
}

export interface OrderCell {
  readonly name: string;
  /** Functions of schema public. */
  readonly call: CallFunction;
}

/** The cells where there is one. */
export function oneCell(call: CallFunction): OrderCells {
  const cell = { name: 'db1', call };
  return {
    isOne: true,
    onOrder: (_, ask) => ask(cell),
    likely: () => cell,
  };
}
