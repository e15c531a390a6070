import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { entranceProblems } from '../../src/demo/paid/entrance.ts';
import type { BookedPayment, Books, OrderFacts } from '../../src/demo/paid/facts.ts';
import { judgeBooks } from '../../src/demo/paid/judge.ts';
import { planBuyers } from '../../src/demo/paid/plan.ts';
import { describePaid, rowsOf } from '../../src/demo/paid/summary.ts';

const PRICE = 1_000;

interface Told {
  readonly seats: number;
  readonly tickets: number;
  readonly state: string;
  readonly payments: readonly (readonly [received: number, refunded: number])[];
}

/** An order as both databases tell it, and what the stand-in booked for it. */
function orderOf(id: string, { seats, tickets, state, payments }: Told) {
  const booked: BookedPayment[] = payments.map(([received, refunded], at) => ({
    id: `pi_${id}_${at}`,
    order_id: id,
    received,
    refunded,
  }));
  const facts = {
    intake: {
      order: { order_id: id, seats, amount: seats * PRICE },
      claims: Array.from({ length: seats }, () => ({ state })),
      decisions: booked.map(() => ({})),
    },
    ledger: {
      tickets: Array.from({ length: tickets }, () => ({})),
      payments: booked.map(({ id: object_id, received: captured, refunded }) => ({
        object_id,
        captured,
        refunded,
      })),
    },
  } as unknown as OrderFacts;
  return { facts, booked };
}

const ORDERS: Record<string, Told> = {
  paid: { seats: 2, tickets: 2, state: 'committed', payments: [[2_000, 0]] },
  twice: {
    seats: 1,
    tickets: 1,
    state: 'committed',
    payments: [
      [1_000, 0],
      [1_000, 1_000],
    ],
  },
  expired: { seats: 3, tickets: 0, state: 'expired', payments: [] },
  late: { seats: 1, tickets: 0, state: 'expired', payments: [[1_000, 1_000]] },
  voided: { seats: 1, tickets: 0, state: 'voided', payments: [[1_000, 1_000]] },
};

function booksOf(orders: Record<string, Told>, change: Partial<Books> = {}): Books {
  const all = Object.entries(orders).map(([id, told]) => orderOf(id, told));
  return {
    price: PRICE,
    seats: 10,
    levels: { available: 7, reserved: 0, consumed: 3 },
    orders: all.map(({ facts }) => facts),
    payments: all.flatMap(({ booked }) => booked),
    openSessions: 0,
    ...change,
  };
}

const problems = (books: Books) => judgeBooks(books, 'eur').problems;
const withOrder = (name: string, change: Partial<Told>) =>
  problems(booksOf({ ...ORDERS, [name]: { ...(ORDERS[name] as Told), ...change } }));

describe('the judge of a paid demo', () => {
  it('finds nothing where the three books agree', () => {
    const { sums, problems: found } = judgeBooks(booksOf(ORDERS), 'eur');
    assert.deepEqual(found, []);
    assert.deepEqual(
      [sums.orders, sums.tickets, sums.received, sums.refunded, sums.keptAtStripe, sums.keptInLedger],
      [5, 3, 6_000, 3_000, 3_000, 3_000],
    );
  });

  it('notices a ticket too few or too many, and money that is kept for none', () => {
    assert.match(withOrder('paid', { tickets: 1 }).join(), /1 tickets for 2 seats/);
    assert.match(withOrder('voided', { tickets: 1 }).join(), /0 claims are committed, 1 are tickets/);
    assert.match(withOrder('late', { payments: [[1_000, 999]] }).join(), /keeps EUR 0\.01 for 0 tickets/);
    assert.match(withOrder('paid', { payments: [[2_000, 1]] }).join(), /keeps EUR 19\.99 for 2 tickets/);
    assert.match(withOrder('expired', { state: 'held' }).join(), /3 claims have not ended/);
  });

  it('notices seats that do not add up, and a session that could still be paid', () => {
    const levels = { available: 6, reserved: 1, consumed: 3 };
    assert.match(problems(booksOf(ORDERS, { levels })).join(), /3 are sold, 1 held and 6 free/);
    assert.match(problems(booksOf(ORDERS, { openSessions: 1 })).join(), /1 sessions can still be paid/);
  });

  it('notices a payment that the ledger has otherwise or not at all, and one that nothing was decided about', () => {
    const books = booksOf(ORDERS);
    const [first, ...rest] = books.payments;
    assert.ok(first);
    const told = problems({ ...books, payments: [{ ...first, received: 2_001 }, ...rest] }).join();
    assert.match(told, /payment pi_paid_0: Stripe has 2001/);
    assert.match(told, /the ledger keeps EUR 30\.00, Stripe EUR 30\.01/);
    const extra = { ...first, id: 'pi_unknown', received: 0 };
    const unknown = problems({ ...books, payments: [...books.payments, extra] }).join();
    assert.match(unknown, /does not have the payment pi_unknown/);
    assert.match(unknown, /1 decisions about 2 payments/);
  });
});

describe('a paid demo', () => {
  it('has each kind of buyer, one to four seats, and the same ones each time', () => {
    const plan = planBuyers(60);
    assert.deepEqual(planBuyers(60), plan);
    const ways = plan.map(({ way }) => way);
    for (const way of ['pays', 'leaves', 'late', 'twice']) assert.ok(ways.includes(way as 'pays'), way);
    assert.deepEqual(
      plan.filter(({ way }) => way === 'refunded').map(({ number }) => number),
      [0],
    );
    assert.deepEqual([...new Set(plan.map(({ seats }) => seats))].sort(), [1, 2, 3, 4]);
  });

  it('tells what the buyers did, and what is not as promised', () => {
    const books = booksOf(ORDERS);
    const claim = (claim_id: string) => ({ claim: { claim_id } as never });
    const served = [
      { number: 1, way: 'pays', seats: 2, end: 'paid', ...claim('paid') },
      { number: 2, way: 'twice', seats: 1, end: 'paid', ...claim('twice') },
      { number: 3, way: 'late', seats: 1, end: 'refunded', ...claim('late') },
      { number: 4, way: 'pays', seats: 4, end: 'no_seats' },
    ] as const;
    const rows = rowsOf(served, books);
    assert.deepEqual(
      rows.map(({ what, tickets, received, refunded }) => [what, tickets, received, refunded]),
      [
        ['paid in time', 2, 2_000, 0],
        ['paid twice: one goes back', 1, 2_000, 1_000],
        ['paid late, sold out: money back', 0, 1_000, 1_000],
        ['found too few seats', 0, 0, 0],
      ],
    );
    const { sums } = judgeBooks(books, 'eur');
    const entrance = { first: 'valid', second: 'used', refunded: 'voided' };
    const outcome = { pool_id: 'p', rows, sums, levels: books.levels, entrance, ticket_url: 'http://x/t/1' };
    const good = describePaid({ ...outcome, ok: true, problems: [] }, 'eur');
    assert.match(good, /All three books agree: 3 tickets, EUR 30\.00/);
    assert.match(good, /The entrance +a ticket: valid, the second time: used; a refunded one: voided/);
    assert.match(good, /A ticket to open: http:\/\/x\/t\/1$/);
    const bad = describePaid({ ...outcome, ok: false, problems: ['a cent is missing'] }, 'eur');
    assert.match(bad, /not what Sluice promises:\n {2}- a cent is missing/);
  });

  it('notices an entrance that lets a ticket in twice, or one that was refunded', () => {
    const good = { first: 'valid', second: 'used', refunded: 'voided' };
    assert.deepEqual(entranceProblems(good), []);
    assert.deepEqual(entranceProblems({ ...good, refunded: null }), []);
    assert.deepEqual(entranceProblems(null), []);
    for (const [change, problem] of [
      [{ first: 'unknown' }, /says unknown of a ticket that is paid/],
      [{ second: 'valid' }, /says valid of a ticket that was let in before/],
      [{ refunded: 'valid' }, /says valid of a ticket that was refunded/],
    ] as const)
      assert.match(entranceProblems({ ...good, ...change }).join(), problem);
  });
});
