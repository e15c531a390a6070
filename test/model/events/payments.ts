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
  /** False where the provider leaves out the user: such an event waits until its payment is known. */
  namesUser: boolean;
  object: Record<string, unknown>;
  pays?: true;
  refundTotal?: number;
  refund?: { id: string; amount: number; hasFailed: boolean };
  /** Moves money once, each under a key of its own. */
  credits?: readonly { key: string; amount: number }[];
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
  ): Notice => ({
    type,
    second,
    state,
    namesUser: false,
    object: { id, payment_intent: payment, currency: 'usd', amount, status, metadata: {} },
  });
  const refund = (type: string, second: number, id: string, amount: number, hasFailed: boolean): Notice => ({
    ...about(`refund.${type}`, second, 'succeeded', id, amount, hasFailed ? 'failed' : 'succeeded'),
    refund: { id, amount, hasFailed },
  });
  const [one, two, dispute] = [`re1_${payment}`, `re2_${payment}`, `dp_${payment}`];
  const withdrawn = { key: `dispute:${dispute}`, amount: -DISPUTED };
  return [
    intent('created', 'created'),
    { ...intent('succeeded', 'succeeded'), pays: true },
    { ...charge('succeeded', 0), pays: true },
    { ...charge('refunded', 1, { amount_refunded: 300 }), refundTotal: 300 },
    { ...charge('refunded', 2, { amount_refunded: 700 }), refundTotal: 700 },
    refund('created', 1, one, 300, false),
    refund('created', 2, two, 400, false),
    refund('failed', 2, one, 300, true),
    {
      ...about('charge.dispute.created', 3, 'disputed', dispute, DISPUTED, 'needs_response'),
      credits: [withdrawn],
    },
    {
      ...about('charge.dispute.closed', 3, 'dispute_won', dispute, DISPUTED, 'won'),
      // Who gives back has taken, also where nobody told that.
      credits: [withdrawn, { key: `dispute_won:${dispute}`, amount: DISPUTED }],
    },
    intent('canceled', 'canceled'),
  ];
}

export type Summary = {
  isKnown: boolean;
  told: number;
  refunded: number;
  credits: Set<string>;
  balance: number;
};

export function summaryOf(taken: readonly Notice[]): Summary {
  const credits = new Map<string, number>();
  for (const { pays, credits: moved = [] } of taken) {
    if (pays) credits.set('payment', PAID);
    for (const { key, amount } of moved) credits.set(key, amount);
  }
  const refunded = refundedOf(taken);
  const moved = [...credits.values()].reduce((sum, amount) => sum + amount, 0);
  return {
    isKnown: taken.length > 0,
    told: Math.max(-1, ...taken.map(({ state }) => STATES.indexOf(state))),
    refunded,
    credits: new Set(credits.keys()),
    balance: moved - refunded,
  };
}

/**
 * The last total told, less what failed since; or the refunds that have not failed, if they are more. No more than was
 * paid, and nothing as long as nobody has told that: every event that tells of a payment or a total does.
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
