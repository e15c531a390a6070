// What the checkers of paid orders must reject: I14 to I18.

import type { History } from '../../chaos/history.ts';
import type { PromiseName } from '../../chaos/judge.ts';
import type { PaidHistory } from '../../chaos/paid_history.ts';
import { type BadHistory, bad, pick } from './bad_history.ts';
import { stored } from './good_history.ts';
import { addOrders, GRACE_UNTIL, HOLD_UNTIL } from './good_orders.ts';

const badOrder = (
  promise: PromiseName,
  name: string,
  also: PromiseName[],
  spoil: (paid: PaidHistory, history: History) => void,
): BadHistory => bad(promise, name, also, (history) => spoil(addOrders(history), history));

const PRICE = 1_000;
const [O1, O2, O3, O4] = [0, 1, 2, 3];

export const BAD_ORDERS: BadHistory[] = [
  badOrder('I14', 'a payment that is neither tickets nor given back', [], ({ final, books }) => {
    final.refunds = [];
    pick(books.payments, 3).refunds = [];
    final.credits.splice(-1);
    final.payments.splice(-1, 1, { paymentKey: 'stripe:paid/pi_5', refunded: 0 });
  }),
  badOrder('I14', 'a payment on our page that the ledger never heard of', [], ({ final, books }) => {
    books.payments.push({ ...pick(books.payments), id: 'pi_9', orderId: 'o2' });
    final.credits.splice(0, 0);
  }),
  badOrder('I14', 'a payment that Stripe never took', [], ({ final }) => {
    final.payments.push({ paymentKey: 'stripe:paid/pi_9', refunded: 0 });
  }),
  badOrder('I14', 'tickets and our refund', [], ({ books, final }) => {
    pick(books.payments).refunds = [{ amount: PRICE, isOurs: true }];
    final.refunds.push({ id: 'void:o1', paymentKey: 'stripe:paid/pi_1', amount: PRICE, state: 'sent' });
  }),
  badOrder('I14', 'a refund of ours that was not due', [], ({ final }) => {
    final.refunds = [];
  }),
  badOrder('I14', 'more given back than was paid', [], ({ books }) => {
    pick(books.payments, 1).refunds.push({ amount: PRICE, isOurs: false });
  }),
  badOrder('I14', 'tickets of a payment that was lost in a dispute', [], ({ books }) => {
    pick(books.payments).isLost = true;
  }),
  badOrder('I14', 'credits that do not add up to what is due', [], ({ final }) => {
    final.credits.push({ paymentKey: 'stripe:paid/pi_1', kind: 'purchase', amount: -1 });
  }),
  badOrder('I14', 'a decision that was never carried out', [], ({ final }) => {
    pick(final.outbox).state = 'due';
  }),
  badOrder('I14', 'a slow payment that failed and bought a ticket all the same', [], ({ books }) => {
    pick(books.payments, 2).isPaid = false;
  }),
  badOrder('I9', 'an event about an order whose lease was lost and that is gone', [], ({ final }) => {
    final.events = [];
  }),
  badOrder('I9', 'an event about an order that two leases ended', [], (_, { eventFinishes }) => {
    for (const worker of ['w1', 'w2'])
      eventFinishes.push({ worker, eventId: 'evt_1', attempts: 1, takeovers: 0, result: 'success', at: 250 });
  }),
  badOrder('I10', 'an event about an order that still fails', [], ({ final }) => {
    final.events.push(stored('row99', 'evt_9', 'failed'));
  }),
  badOrder('I12', 'an event about an order that is a dead letter', [], ({ final }) => {
    final.events.push(stored('row99', 'evt_9', 'dead_letter'));
  }),
  badOrder('I12', 'an event about an order that an operator had to skip', [], ({ final }) => {
    final.events.push({ ...stored('row99', 'evt_9', 'skipped'), skippedBy: 'operator' });
  }),
  badOrder('I11', 'a void that was done and has no audit row', [], (_, { final }) => {
    final.audit = final.audit.filter(({ action }) => action !== 'ticket_void');
  }),
  badOrder('I11', 'a void that is audited twice', [], (_, { final }) => {
    final.audit.push(pick(final.audit.filter(({ action }) => action === 'ticket_void')));
  }),
  badOrder('I11', 'a void in the audit log that no operator asked for', [], ({ voids }) => {
    voids.pop();
  }),
  badOrder(
    'I15',
    'seats that are free seconds after a hold that its buyer never asked to pay for',
    [],
    ({ final }) => {
      pick(final.claims, 6).freedAt = HOLD_UNTIL + 25_000;
    },
  ),
  badOrder('I15', 'seats that are held long after the grace', [], ({ final, orders }) => {
    pick(final.claims, 4).freedAt = GRACE_UNTIL + 25_000;
    pick(orders, O4).paidAt = 60_000;
  }),
  badOrder('I15', 'a seat that is held at rest', ['I6'], ({ final }, history) => {
    const [o2, all] = [pick(final.claims, 2), history.final.claims];
    Object.assign(o2, { state: 'held', live: true, freedAt: null });
    Object.assign(all.find(({ claimId }) => claimId === 'o2') ?? {}, { state: 'held', live: true });
    Object.assign(history.final.slots.find(({ slotId }) => slotId === o2.slotId) ?? {}, {
      status: 'RESERVED',
    });
  }),
  badOrder('I16', 'money that was taken after the seats were free', [], ({ orders }) => {
    Object.assign(pick(orders, O2), { paidAt: 21_500, paidWith: 'card' });
  }),
  badOrder('I16', 'a session that is open at rest', [], ({ books }) => {
    pick(books.sessions, O2).status = 'open';
  }),
  badOrder('I16', 'a session that no checkout knows', [], ({ books }) => {
    books.sessions.push({ id: 'cs_9', orderId: 'o2', status: 'expired', paymentIntent: null });
  }),
  badOrder('I17', 'a void without a tombstone', [], ({ final }) => {
    final.tombstones = [];
  }),
  badOrder('I17', 'a seat that was on sale before its tombstone', [], ({ final }) => {
    pick(final.tombstones).voidedAt = HOLD_UNTIL + 9_001;
  }),
  badOrder('I17', 'a ticket of a claim that has a tombstone', [], ({ final }) => {
    final.tombstones.push({ claimId: 'o1', orderId: 'o1', voidedAt: HOLD_UNTIL });
  }),
  badOrder('I17', 'a void without a reason', ['I14'], ({ books }) => {
    pick(books.payments, 1).refunds = [];
  }),
  badOrder('I18', 'an order with one claim too few', [], ({ final }) => {
    pick(final.orders, O3).seats = 2;
  }),
  badOrder('I18', 'an order of which one seat ended', [], ({ final }, history) => {
    const claimed = history.final.claims.find(({ claimId }) => claimId === 'o1b');
    Object.assign(pick(final.claims, 1), { state: 'expired', live: false, freedAt: GRACE_UNTIL });
    Object.assign(claimed ?? {}, { state: 'expired', live: false });
    Object.assign(history.final.slots.find(({ slotId }) => slotId === 'slot of o1b') ?? {}, {
      status: 'AVAILABLE',
    });
    history.final.tickets = history.final.tickets.filter(({ claimId }) => claimId !== 'o1b');
    // Half of it is due: only the order is wrong.
    final.tickets.splice(1, 1);
    final.refunds.push({ id: 'void:o1b', paymentKey: 'stripe:paid/pi_1', amount: PRICE, state: 'review' });
    final.tickets.splice(0, 1);
    final.refunds.push({ id: 'void:o1', paymentKey: 'stripe:paid/pi_1', amount: PRICE, state: 'review' });
    final.credits.push({ paymentKey: 'stripe:paid/pi_1', kind: 'purchase_void', amount: 2 * PRICE });
  }),
  badOrder('I18', 'an order that two payments bought', [], ({ final }) => {
    pick(final.decisions, 3).decision = 'funds';
  }),
  badOrder('I18', 'an order that was promised and is not there', [], ({ orders }) => {
    orders.push({ ...pick(orders, O1), orderId: 'o9', claimIds: [], sessionId: null, paidAt: null });
  }),
  badOrder('I18', 'an order with fewer seats than were asked for', [], (_, { claims }) => {
    pick(claims.filter(({ requestId }) => requestId === 'request o1')).quantity = 3;
  }),
  badOrder('I18', 'a seat that was promised with an order and is not of it', [], ({ orders }) => {
    pick(orders, O1).claimIds.push('o3');
  }),
];
