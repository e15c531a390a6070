// What the events of one payment come to, as a function of which events took effect: a set has no order, so neither has
// the answer. The rules are those of the provider, written down a second time.

/** Lowest first: a higher state is never followed by a lower one. */
const STATES = [
  'created',
  'requires_action',
  'processing',
  'failed',
  'succeeded',
  'partially_refunded',
  'refunded',
  'disputed',
  'dispute_won',
  'dispute_lost',
  'canceled',
] as const;
type State = (typeof STATES)[number];

export type Notice = {
  type: string;
  second: number;
  state: State;
  /** False where the provider leaves out the user: what such an event tells is credited once another names the user. */
  namesUser: boolean;
  object: Record<string, unknown>;
  pays?: true;
  refundTotal?: number;
  refund?: { id: string; amount: number; hasFailed: boolean };
  /** A dispute's balance transactions, each of which moves money once. */
  moved?: readonly { id: string; amount: number }[];
};

export const PAID = 1000;
const DISPUTED = 400;

/** All that a provider may say about one payment; several tell one fact, and most of them within one second. */
export function noticesOf(payment: string, user: string): Notice[] {
  const money = { currency: 'usd', amount: PAID };
  const owner = { metadata: { user_id: user } };
  const intent = (type: string, state: State): Notice => ({
    type: `payment_intent.${type}`,
    second: 0,
    state,
    namesUser: true,
    object: { id: payment, amount_received: PAID, ...money, ...owner },
  });
  const charge = (type: string, second: number, more: object = {}): Notice => ({
    type: `charge.${type}`,
    second,
    state: 'succeeded',
    namesUser: true,
    object: { id: `ch_${payment}`, payment_intent: payment, ...money, ...owner, ...more },
  });
  const about = (
    type: string,
    second: number,
    state: State,
    id: string,
    amount: number,
    status: string,
    more: object = {},
  ): Notice => ({
    type,
    second,
    state,
    namesUser: false,
    object: { id, payment_intent: payment, currency: 'usd', amount, status, metadata: {}, ...more },
  });
  const refund = (type: string, second: number, id: string, amount: number, hasFailed: boolean): Notice => ({
    ...about(`refund.${type}`, second, 'succeeded', id, amount, hasFailed ? 'failed' : 'succeeded'),
    refund: { id, amount, hasFailed },
  });
  const [one, two, dispute] = [`re1_${payment}`, `re2_${payment}`, `dp_${payment}`];
  const disputed = (type: string, status: string, state: State, amounts: number[]): Notice => {
    const moved = amounts.map((amount, at) => ({ id: `txn${at}_${payment}`, amount }));
    const transactions = moved.map((one) => ({ ...one, currency: 'usd' }));
    const more = { balance_transactions: transactions };
    return { ...about(`charge.dispute.${type}`, 3, state, dispute, DISPUTED, status, more), moved };
  };
  return [
    intent('created', 'created'),
    { ...intent('succeeded', 'succeeded'), pays: true },
    { ...charge('succeeded', 0), pays: true },
    { ...charge('refunded', 1, { amount_refunded: 300 }), refundTotal: 300 },
    { ...charge('refunded', 2, { amount_refunded: 700 }), refundTotal: 700 },
    refund('created', 1, one, 300, false),
    refund('created', 2, two, 400, false),
    refund('failed', 2, one, 300, true),
    disputed('created', 'needs_response', 'disputed', [-DISPUTED]),
    disputed('closed', 'won', 'dispute_won', [-DISPUTED, DISPUTED]),
    intent('canceled', 'canceled'),
  ];
}

/** What can be told about a payment, as far as news is a change of it. */
export type Summary = {
  isKnown: boolean;
  told: number;
  hasUser: boolean;
  captured: number;
  refunded: number;
  /** Null until a balance transaction was told. */
  disputed: number | null;
  balance: number;
};

export function summaryOf(taken: readonly Notice[]): Summary {
  const moved = new Map(taken.flatMap(({ moved = [] }) => moved.map(({ id, amount }) => [id, amount])));
  const sum = [...moved.values()].reduce((total, amount) => total + amount, 0);
  const hasUser = taken.some(({ namesUser }) => namesUser);
  const captured = taken.some(({ pays }) => pays) ? PAID : 0;
  const refunded = refundedOf(taken);
  return {
    isKnown: taken.length > 0,
    told: Math.max(-1, ...taken.map(({ state }) => STATES.indexOf(state))),
    ...{ hasUser, captured, refunded },
    disputed: moved.size === 0 ? null : sum,
    balance: hasUser ? captured - refunded + sum : 0,
  };
}

/**
 * The last reported total, less what failed since; or the refunds that have not failed, if they are more. At most what was
 * paid, and 0 before an event has told what was paid: every event of a payment or a total does.
 */
function refundedOf(taken: readonly Notice[]): number {
  if (!taken.some(({ pays, refundTotal }) => pays || refundTotal !== undefined)) return 0;
  const totals = taken.flatMap(({ refundTotal, second }) =>
    refundTotal === undefined ? [] : [{ amount: refundTotal, second }],
  );
  totals.sort((one, other) => one.second - other.second || one.amount - other.amount);
  const last = totals.at(-1) ?? { amount: 0, second: Number.NEGATIVE_INFINITY };
  const refunds = new Map<string, { amount: number; failedAt: number | null }>();
  for (const { refund, second } of taken) {
    if (refund === undefined) continue;
    const known = refunds.get(refund.id)?.failedAt ?? null;
    refunds.set(refund.id, { amount: refund.amount, failedAt: refund.hasFailed ? second : known });
  }
  let failedSince = 0;
  let standing = 0;
  for (const { amount, failedAt } of refunds.values()) {
    if (failedAt === null) standing += amount;
    else if (failedAt >= last.second) failedSince += amount;
  }
  return Math.min(PAID, Math.max(0, last.amount - failedSince, standing));
}

export function stateOf(taken: readonly Notice[]): State | undefined {
  const { isKnown, told, refunded } = summaryOf(taken);
  if (!isKnown) return undefined;
  const byRefunds = refunded === 0 ? 'created' : refunded >= PAID ? 'refunded' : 'partially_refunded';
  return STATES[Math.max(told, STATES.indexOf(byRefunds))];
}
