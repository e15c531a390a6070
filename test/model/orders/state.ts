// What both databases hold about orders, as the promises read it.

export type SlotState = { id: string; pool: string; status: 'AVAILABLE' | 'RESERVED' | 'CONSUMED' };

export type ClaimState = {
  id: string;
  slot: string;
  pool: string;
  user: string;
  state: string;
  isFreed: boolean;
  /** Null for a single claim of a pool without payment. */
  order: string | null;
  /** The claim that this one stands for: a late payment makes new claims. */
  replaces: string | null;
};

export type OrderState = {
  id: string;
  pool: string;
  user: string;
  seats: number;
  unitPrice: number;
  /** Seconds from now; null: paid, or a paid session is on its way. */
  holdSec: number | null;
  graceSec: number | null;
  endAs: string;
  paymentKey: string | null;
};

export type DecisionState = { key: string; order: string; decision: string; reason: string; isOwn: boolean };
export type CheckoutState = {
  order: string;
  n: number;
  session: string | null;
  intent: string | null;
  state: string;
};

export type Intake = {
  slots: SlotState[];
  claims: ClaimState[];
  orders: OrderState[];
  decisions: DecisionState[];
  checkouts: CheckoutState[];
  messages: { id: number; claim: string }[];
  letters: { id: number; claim: string }[];
};

export type RefundState = { id: string; key: string; amount: number; state: string };

export type Ledger = {
  tickets: { slot: string; claim: string; user: string; order: string | null }[];
  voided: { claim: string; order: string | null }[];
  outbox: { id: string; kind: string; state: string; result: string | null }[];
  refunds: RefundState[];
  payments: { key: string; state: string; refunded: number }[];
  credits: { key: string; kind: string; amount: number }[];
  /** Events that no retry can mend. */
  deadEvents: { id: string; error: string }[];
};

export type State = { intake: Intake; ledger: Ledger };

/** The claims of an order that a payment bought, or would: those that stand for others, or else the first ones. */
export function seatsOf({ intake }: State, order: string): ClaimState[] {
  const all = intake.claims.filter((claim) => claim.order === order);
  const late = all.filter(({ replaces }) => replaces !== null);
  return late.length > 0 ? late : all;
}

/** Its tenant is that of the endpoint at which it is told. */
export const keyOf = ({ id, kind }: { id: string; kind: string }): string =>
  `${kind === 'foreign' ? 'stripe:other' : 'stripe'}/${id}`;
