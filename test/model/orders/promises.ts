// The promises I14 to I18 about paid orders, and those before them that orders could break. `checkAlways` holds after every
// call of any process, `checkAtRest` when everything has drained. They believe tables and Stripe's books.

import { type PromiseName, Violation } from '../violation.ts';
import { awayOf, isGone, leftOf, mayHaveGone, type Payment, refundedByUs, refundedOf } from './books.ts';
import { keyOf, type State, seatsOf } from './state.ts';
import type { Stripe } from './stripe.ts';

/** What the promises are held against. */
export type Scene = {
  state: State;
  stripe: Stripe;
  rules: { unitPrice: number; maxPerUser: number | null; payPool: string };
  /** Orders that were freed before their grace ran out: none of their sessions may take money. */
  freedInTime: ReadonlySet<string>;
  /** Seconds since holds were last ended: what should have ended by then has. */
  expiredSecAgo: number | null;
  /** Claims that had ended at some moment before. */
  ended: ReadonlySet<string>;
  /** Claims that operators voided, with their money given back or without. */
  takenBack: ReadonlyMap<string, 'refund' | 'forfeit'>;
  /** Refunds that operators skipped. */
  skipped: ReadonlySet<string>;
};

type Finding = readonly [PromiseName, string];
type Look = (scene: Scene) => Finding[];

/** Purposes for which a payment must never buy a ticket. */
const WORTHLESS: ReadonlySet<string> = new Set([
  'short',
  'over',
  'other-user',
  'unverified',
  'test',
  'foreign',
]);
/** How a claim stands when nothing is left to do. */
const AT_REST: ReadonlySet<string> = new Set(['committed', 'expired', 'released', 'voided', 'discarded']);
const OPEN_REFUNDS: ReadonlySet<string> = new Set(['due', 'review', 'failed']);

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

const claimsAndSlots: Look = ({ state, rules }) => {
  const found: Finding[] = [];
  const owners = new Map<string, string>();
  const held = new Map<string, number>();
  for (const { id, slot, pool, user, isFreed } of state.intake.claims) {
    if (isFreed) continue;
    if (owners.has(slot)) found.push(['I2', `slot ${slot} has two live claims`]);
    owners.set(slot, id);
    if (pool === rules.payPool) held.set(user, (held.get(user) ?? 0) + 1);
  }
  for (const [user, count] of held)
    if (rules.maxPerUser !== null && count > rules.maxPerUser)
      found.push(['I4', `${user} holds ${count} seats of at most ${rules.maxPerUser}`]);
  for (const { id, status } of state.intake.slots) {
    const owner = owners.get(id);
    if (status === 'AVAILABLE' && owner !== undefined)
      found.push(['I17', `slot ${id} is on sale and ${owner} lives`]);
    if (status !== 'AVAILABLE' && owner === undefined) found.push(['I5', `slot ${id} is taken by no claim`]);
  }
  return found;
};

const tickets: Look = ({ state: { intake, ledger } }) => {
  const voided = new Set(ledger.voided.map(({ claim }) => claim));
  const onSale = new Set(intake.slots.filter(({ status }) => status === 'AVAILABLE').map(({ id }) => id));
  return ledger.tickets.flatMap(({ slot, claim }): Finding[] => {
    const owner = intake.claims.find((one) => one.slot === slot && !one.isFreed);
    if (voided.has(claim)) return [['I17', `the ticket of ${claim} lives and is void`]];
    if (onSale.has(slot)) return [['I17', `slot ${slot} is on sale and ${claim} has its ticket`]];
    if (owner?.id !== claim)
      return [['I2', `slot ${slot} has two owners: ticket ${claim}, claim ${owner?.id}`]];
    return [];
  });
};

/** A claim that has ended never lives again, and the tombstone of a void comes before the slot. */
const voids: Look = ({ state: { intake, ledger }, ended }) => {
  const voided = new Set(ledger.voided.map(({ claim }) => claim));
  return intake.claims.flatMap(({ id, state, isFreed }): Finding[] => {
    if (!isFreed && ended.has(id)) return [['I17', `claim ${id} had ended, and lives again`]];
    if (state === 'voided' && !voided.has(id))
      return [['I17', `claim ${id} is voided, and the ledger has no tombstone`]];
    return [];
  });
};

/** What a history takes itself; the times that it lets pass are longer. */
const MOMENT_SEC = 10;

const holds: Look = ({ state, expiredSecAgo }) =>
  expiredSecAgo === null
    ? []
    : state.intake.orders
        .filter(({ id }) => seatsOf(state, id).some((claim) => claim.state === 'held'))
        // A hold that was set to end since then, as that of a payment that was void, is ended the next time.
        .filter(
          ({ holdSec, graceSec }) =>
            holdSec !== null && holdSec < -expiredSecAgo - MOMENT_SEC && (graceSec ?? 0) < -expiredSecAgo,
        )
        .map(({ id }) => ['I15', `order ${id} is held past its hold and its grace`]);

/** All of an order or nothing; what was paid for ends only as voided; and one payment bought it. */
const orders: Look = ({ state }) =>
  state.intake.orders.flatMap(({ id, seats, paymentKey }): Finding[] => {
    const claims = seatsOf(state, id);
    const found: Finding[] = [];
    if (claims.length !== seats) found.push(['I18', `order ${id} has ${claims.length} claims, not ${seats}`]);
    const ended = claims.filter(({ isFreed, state: one }) => isFreed && one !== 'voided');
    if (ended.length > 0 && ended.length < claims.length)
      found.push(['I18', `order ${id} ended in part: ${claims.map((one) => one.state)}`]);
    if (paymentKey !== null && ended.length > 0)
      found.push(['I14', `order ${id} was paid and ended as ${ended.map((one) => one.state)}`]);
    const bought = state.intake.decisions.filter(
      ({ order, decision }) => order === id && decision === 'funds',
    );
    if (bought.length > 1) found.push(['I18', `order ${id} was bought by ${bought.map(({ key }) => key)}`]);
    if (bought.length === 1 && bought[0]?.key !== paymentKey)
      found.push(['I18', `order ${id} was bought by ${bought[0]?.key} and names ${paymentKey}`]);
    return found;
  });

/** The tickets that a payment has bought. */
const boughtBy = ({ intake, ledger }: State, key: string): number => {
  const bought = new Set(intake.orders.filter(({ paymentKey }) => paymentKey === key).map(({ id }) => id));
  const claims = new Map(intake.claims.map((claim) => [claim.id, claim.order]));
  return ledger.tickets.filter(({ claim }) => bought.has(claims.get(claim) ?? '')).length;
};

const money: Look = ({ state, stripe, rules }) =>
  stripe.payments.flatMap((payment): Finding[] => {
    const key = keyOf(payment);
    const found: Finding[] = [];
    const mine = boughtBy(state, key);
    const ours = refundedByUs(payment);
    const due = sum(state.ledger.refunds.filter((one) => one.key === key).map(({ amount }) => amount));
    if (refundedOf(payment) > payment.amount)
      found.push(['I14', `${payment.id} was refunded more than paid`]);
    if (mine > 0 && WORTHLESS.has(payment.kind))
      found.push(['I14', `${payment.id} (${payment.kind}) bought a ticket`]);
    if (ours > due) found.push(['I14', `${payment.id}: we refunded ${ours}, and ${due} were due`]);
    if (mine * rules.unitPrice + ours > payment.amount)
      found.push(['I14', `${payment.id} has its tickets and our refund`]);
    return found;
  });

const sessions: Look = ({ stripe, freedInTime }) =>
  stripe.sessions
    .filter((one) => one.status === 'open' && freedInTime.has(one.client_reference_id))
    .map((one) => ['I16', `session ${one.id} is open, and the seats of ${one.client_reference_id} are free`]);

/** No event that Stripe tells, or that we tell ourselves, is beyond repair. */
const events: Look = ({ state: { ledger } }) =>
  ledger.deadEvents.map(({ id, error }) => ['I12', `event ${id} is a dead letter: ${error}`]);

const ALWAYS: readonly Look[] = [claimsAndSlots, tickets, voids, holds, orders, money, sessions, events];

const claimsAtRest: Look = ({ state: { intake, ledger } }) => {
  const sold = new Set(ledger.tickets.map(({ claim }) => claim));
  return intake.claims.flatMap(({ id, state }): Finding[] => {
    if (!AT_REST.has(state)) return [['I10', `claim ${id} is ${state} at rest`]];
    if ((state === 'committed') !== sold.has(id))
      return [['I3', `claim ${id} is ${state} and ${sold.has(id) ? 'has a' : 'has no'} ticket`]];
    return [];
  });
};

const outboxAtRest: Look = ({ state: { ledger } }) =>
  ledger.outbox
    .filter(({ state }) => state !== 'done')
    .map(({ id, state }) => ['I10', `${id} is ${state} at rest`]);

/** What the seller has of each payment that names an order is tickets, due or forfeited, and nothing twice. */
const moneyAtRest: Look = (scene) =>
  scene.stripe.payments.flatMap((payment) =>
    payment.isPaid && payment.isLive && payment.kind !== 'foreign'
      ? judgeAtRest(scene, payment)
      : scene.state.ledger.refunds
          .filter(({ key }) => key === keyOf(payment))
          .map(({ id }): Finding => ['I14', `a refund is due for ${payment.id} (${payment.kind}): ${id}`]),
  );

/**
 * What went away in part stands against no ticket: Stripe does not say for which seat it was. So tickets, what is due and what is kept
 * may come to more than what is left, and never to more than what was paid.
 */
function judgeAtRest(scene: Scene, payment: Payment): Finding[] {
  const { state, rules, takenBack, skipped } = scene;
  const key = keyOf(payment);
  const isTold = state.ledger.payments.some((one) => one.key === key);
  // Made by hand, and no event ever came.
  if (!isTold && payment.session === undefined) return [];
  const mine = state.ledger.refunds.filter((one) => one.key === key);
  const amountOf = (refunds: typeof mine): number => sum(refunds.map(({ amount }) => amount));
  const tickets = boughtBy(state, key) * rules.unitPrice;
  const open = amountOf(mine.filter((one) => OPEN_REFUNDS.has(one.state)));
  const kept = keptOf(state, key);
  const ours = refundedByUs(payment);
  const left = leftOf(payment);
  const forfeits = [...takenBack.values()].filter((how) => how === 'forfeit').length * rules.unitPrice;
  const allowed = forfeits + amountOf(mine.filter(({ id }) => skipped.has(id)));
  const balance = sum(state.ledger.credits.filter((one) => one.key === key).map(({ amount }) => amount));
  const books = payment.amount - refundedOf(payment) - awayOf(payment) - tickets - kept;
  const told =
    `${payment.id} paid ${payment.amount}: tickets ${tickets}, refunded ${ours} and ${refundedOf(payment) - ours} outside, ` +
    `away ${awayOf(payment)}, due ${open}, forfeited ${kept}`;
  const broken: [boolean, string][] = [
    [isGone(payment) && tickets > 0, 'is gone, and has a ticket'],
    [!mayHaveGone(payment) && hasLostTickets(scene, key), 'has lost a ticket, and was never gone'],
    [tickets + open + kept < left, `${left} are left, and less is accounted for`],
    [tickets + ours + open + kept > payment.amount, 'more is accounted for than was paid'],
    [kept > allowed, `operators said that ${allowed} are kept`],
    [kept > 0 && kept + refundedOf(payment) > payment.amount, 'what went back is kept'],
    [balance !== books, `the credits come to ${balance}, and the books to ${books}`],
  ];
  return broken.filter(([isBroken]) => isBroken).map(([, what]) => ['I14', `${told}: ${what}`]);
}

/** A claim that it bought has ended, and no operator has taken it back. */
const hasLostTickets = ({ state, takenBack }: Scene, key: string): boolean =>
  state.intake.orders
    .filter(({ paymentKey }) => paymentKey === key)
    .flatMap(({ id }) => seatsOf(state, id))
    .some(({ id, isFreed }) => isFreed && !takenBack.has(id));

/** What the seller keeps, by the ledger's own word. */
const keptOf = ({ ledger }: State, key: string): number =>
  -sum(ledger.credits.filter((one) => one.key === key && one.kind === 'forfeit').map(({ amount }) => amount));

const REST: readonly Look[] = [claimsAtRest, outboxAtRest, moneyAtRest];

function check(looks: readonly Look[], scene: Scene): void {
  for (const look of looks) for (const [promise, detail] of look(scene)) throw new Violation(promise, detail);
}

export const checkAlways = (scene: Scene): void => check(ALWAYS, scene);
export const checkAtRest = (scene: Scene): void => check([...ALWAYS, ...REST], scene);
