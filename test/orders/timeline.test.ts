import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { IntakeOrder, OrderClaim } from '#core/console/order_shapes.ts';
import { orderTimeline } from '#core/console/order_timeline.ts';
import { type AuditedLedgerOrder, viewOf } from '#core/console/orders.ts';

const at = (second: number): string => `2026-02-24T10:00:${String(second).padStart(2, '0')}.000Z`;
const ORDER = '0198c0de-0000-7000-8000-000000000001';

const claim = (n: number, change: Partial<OrderClaim> = {}): OrderClaim => ({
  claim_id: `0198c0de-0000-7000-8000-00000000000${n}`,
  resource_id: `00000000-0000-4000-8000-00000000000${n}`,
  label: `A${n}`,
  state: 'committed',
  replaces: null,
  claimed_at: at(0),
  ended_at: null,
  end_reason: null,
  ...change,
});

const intake: IntakeOrder = {
  order: {
    order_id: ORDER,
    pool_id: 'opera',
    user_id: 'ann',
    verified: false,
    status: 'paid',
    seats: 2,
    unit_price: 2_500,
    amount: 5_000,
    currency: 'eur',
    hold_until: null,
    payment_key: 'stripe/pi_1',
  },
  claims: [claim(1), claim(2)],
  checkouts: [
    {
      n: 1,
      state: 'complete',
      session_id: 'cs_1',
      payment_intent: 'pi_1',
      created_at: at(2),
      attempts: 0,
      next_attempt_at: at(2),
    },
  ],
  decisions: [
    {
      payment_key: 'stripe/pi_1',
      amount: 5_000,
      currency: 'eur',
      decision: 'funds',
      reason: null,
      is_own: true,
      decided_at: at(6),
    },
  ],
};

const ledger: AuditedLedgerOrder = {
  audit: [],
  payments: [
    {
      provider: 'stripe',
      object_id: 'pi_1',
      state: 'succeeded',
      captured: 5_000,
      refunded: 0,
      disputed: null,
      currency: 'eur',
      occurred_at: at(4),
    },
  ],
  events: [
    {
      id: '00000000-0000-4000-8000-0000000000e1',
      event_id: 'evt_1',
      event_type: 'checkout.session.completed',
      status: 'success',
      received_at: at(5),
    },
  ],
  outbox: [
    {
      id: 'settle:stripe/pi_1',
      kind: 'settle',
      state: 'done',
      attempts: 0,
      error: null,
      created_at: at(5),
    },
  ],
  refunds: [],
  tickets: [
    { claim_id: claim(1).claim_id, resource_id: claim(1).resource_id, confirmed_at: at(7), used_at: at(9) },
    { claim_id: claim(2).claim_id, resource_id: claim(2).resource_id, confirmed_at: at(7), used_at: null },
  ],
  voided: [],
};

const whats = (one: IntakeOrder, other: AuditedLedgerOrder | undefined): string[] =>
  orderTimeline(one, other, []).map(({ what }) => what);

describe('the timeline of an order', () => {
  it('has what both databases know, in the order it happened', () => {
    assert.deepEqual(whats(intake, ledger), [
      'held',
      'checkout',
      'payment',
      'event',
      'decided_funds',
      'ticket',
      'used',
    ]);
  });

  it('tells tickets of one moment as one step, and each use by its seat', () => {
    const steps = orderTimeline(intake, ledger, []);
    assert.deepEqual(steps.find(({ what }) => what === 'ticket')?.detail, { seats: ['A1', 'A2'] });
    assert.deepEqual(steps.find(({ what }) => what === 'used')?.detail, { seats: ['A1'] });
  });

  it('lets no payment come before its session, whose second it shares', () => {
    const [payment] = ledger.payments;
    assert.ok(payment);
    const early = { ...ledger, payments: [{ ...payment, occurred_at: '2026-02-24T10:00:01.000Z' }] };
    assert.deepEqual(whats(intake, early).slice(0, 3), ['held', 'checkout', 'payment']);
  });

  it('says that the ledger does not answer, after all that is known', () => {
    assert.deepEqual(whats(intake, undefined), ['held', 'checkout', 'decided_funds', 'ledger_unreachable']);
    assert.equal(viewOf(intake, undefined, []).is_ledger_known, false);
  });

  it('shows what the courier has to carry only while it waits', () => {
    const [settle] = ledger.outbox;
    assert.ok(settle);
    const waiting = { ...ledger, outbox: [{ ...settle, state: 'due', error: 'DB1 is away' }] };
    const step = orderTimeline(intake, waiting, []).find(({ what }) => what === 'settle_waits');
    assert.deepEqual(step?.detail, { attempts: 0, error: 'DB1 is away' });
    const dead = { ...ledger, outbox: [{ ...settle, state: 'dead_letter', error: 'SL001 no amount' }] };
    const given = orderTimeline(intake, dead, []).find(({ what }) => what === 'settle_dead_letter');
    assert.deepEqual(given?.detail, { attempts: 0, error: 'SL001 no amount' });
  });

  it('tells seats that ended together as one step, and the seats of a late payment as theirs', () => {
    const expired = { state: 'expired', ended_at: at(3), end_reason: 'hold over' };
    const late = {
      ...intake,
      claims: [
        claim(1, expired),
        claim(2, expired),
        claim(3, { replaces: claim(1).claim_id, claimed_at: at(6) }),
        claim(4, { replaces: claim(2).claim_id, claimed_at: at(6) }),
      ],
    };
    const steps = orderTimeline(late, undefined, []);
    assert.deepEqual(
      steps.map(({ what }) => what),
      ['held', 'checkout', 'expired', 'decided_funds', 'other_seats', 'ledger_unreachable'],
    );
    assert.deepEqual(steps[2]?.detail, { reason: 'hold over', seats: ['A1', 'A2'] });
    assert.deepEqual(steps[4]?.detail, { seats: ['A3', 'A4'] });
  });

  it('calls an order refunded when DB1 decided so and Stripe has sent all of it', () => {
    const owed = {
      id: 'settle:stripe/pi_1',
      order_id: ORDER,
      payment_key: 'stripe/pi_1',
      amount: 5_000,
      currency: 'eur',
      reason: 'sold_out',
      state: 'done' as const,
      provider_refund_id: 're_1',
      is_auto: true,
      decided_by: null,
      tries: 1,
      error: null,
      created_at: at(6),
      next_attempt_at: at(6),
      braked_at: null,
      sent_at: at(7),
    };
    const due = { ...intake, order: { ...intake.order, status: 'refund_due' } };
    assert.equal(viewOf(due, { ...ledger, refunds: [owed] }, []).order.status, 'refunded');
    const waits = { ...owed, state: 'review' as const };
    assert.equal(viewOf(due, { ...ledger, refunds: [owed, waits] }, []).order.status, 'refund_due');
    assert.equal(viewOf(due, { ...ledger, refunds: [] }, []).order.status, 'refund_due');
    assert.equal(
      viewOf(intake, { ...ledger, refunds: [owed] }, []).order.status,
      'paid',
      'a second payment went back',
    );
  });
});
