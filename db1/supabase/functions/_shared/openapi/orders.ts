// Orders and refunds, described.

import { ORDER_QUERY } from '../console/orders.ts';
import { REFUND_BODY, REFUND_QUERY } from '../console/refunds.ts';
import { VOID_BODY } from '../console/void_claims.ts';
import type { AnswerSchema, Descriptions } from './document.ts';
import { operators, page, ref, resultsOf } from './operators.ts';
import { COUNT, COUNT_OR_NULL, FLAG, shape, TEXT, TEXT_OR_NULL } from './shapes.ts';

const AMOUNT = { ...COUNT, description: 'In minor units.' } as const;
const listOf = (items: AnswerSchema): AnswerSchema => ({ type: 'array', items });

export const ORDER_SCHEMAS: { readonly [name: string]: AnswerSchema } = {
  OperatorOrder: shape({
    order_id: { ...TEXT, description: 'The id of its first claim.' },
    pool_id: TEXT,
    user_id: TEXT,
    verified: FLAG,
    status: TEXT,
    seats: COUNT,
    unit_price: AMOUNT,
    amount: AMOUNT,
    currency: TEXT,
    ordered_at: TEXT,
    hold_until: TEXT_OR_NULL,
    payment_key: { ...TEXT_OR_NULL, description: 'tenant/payment of the payment that bought it.' },
  }),
  Refund: shape({
    id: TEXT,
    order_id: TEXT_OR_NULL,
    payment_key: TEXT,
    amount: AMOUNT,
    currency: TEXT,
    reason: TEXT,
    state: TEXT,
    is_auto: FLAG,
    decided_by: TEXT_OR_NULL,
    provider_refund_id: TEXT_OR_NULL,
    tries: COUNT,
    error: TEXT_OR_NULL,
    created_at: TEXT,
    next_attempt_at: TEXT,
    braked_at: TEXT_OR_NULL,
    sent_at: TEXT_OR_NULL,
  }),
  OrderWithTimeline: shape({
    order: ref('OperatorOrder'),
    claims: listOf(
      shape({
        claim_id: TEXT,
        resource_id: TEXT,
        label: TEXT_OR_NULL,
        state: TEXT,
        replaces: TEXT_OR_NULL,
        claimed_at: TEXT,
        ended_at: TEXT_OR_NULL,
        end_reason: TEXT_OR_NULL,
      }),
    ),
    checkouts: listOf(shape({ n: COUNT, state: TEXT, session_id: TEXT_OR_NULL, created_at: TEXT })),
    decisions: listOf(
      shape({
        payment_key: TEXT,
        amount: AMOUNT,
        decision: TEXT,
        reason: TEXT_OR_NULL,
        is_own: FLAG,
        decided_at: TEXT,
      }),
    ),
    payments: listOf(
      shape({
        provider: { ...TEXT, description: 'The tenant.' },
        object_id: TEXT,
        state: TEXT,
        captured: AMOUNT,
        refunded: AMOUNT,
        disputed: COUNT_OR_NULL,
        currency: TEXT_OR_NULL,
        occurred_at: TEXT,
      }),
    ),
    refunds: listOf(ref('Refund')),
    tickets: listOf(shape({ claim_id: TEXT, resource_id: TEXT, confirmed_at: TEXT, used_at: TEXT_OR_NULL })),
    voided: listOf(shape({ claim_id: TEXT, resource_id: TEXT, voided_at: TEXT, cause: TEXT })),
    is_ledger_known: {
      ...FLAG,
      description: 'False while DB2 does not answer: payments, refunds and tickets are not known then.',
    },
    timeline: listOf(
      shape({ at: TEXT_OR_NULL, what: TEXT, detail: { type: 'object', description: 'As the case may be.' } }),
    ),
  }),
  RefundResult: shape({ id: TEXT, outcome: TEXT }),
  VoidResult: shape({ claim_id: TEXT, outcome: TEXT }),
};

const orders = operators('admin: orders');
const refunds = operators('admin: refunds');

export const ORDER_DESCRIPTIONS: Descriptions = {
  'GET /admin/orders': orders.reads('Search orders of paid pools, newest first', page('OperatorOrder'), {
    query: ORDER_QUERY,
  }),
  'GET /admin/orders/:order': orders.reads(
    'An order with its checkouts, payments, decisions, refunds and tickets, as one timeline',
    ref('OrderWithTimeline'),
    {
      parameter: 'The order_id, a claim_id of it, or the id of a payment.',
      errors: ['unknown_claim', 'not_found', 'invalid_input'],
    },
  ),
  'GET /admin/refunds': refunds.reads('Refunds, newest first', page('Refund'), { query: REFUND_QUERY }),
  'GET /admin/refunds/:refund': refunds.reads('One refund', ref('Refund'), {
    parameter: 'Its id.',
    errors: ['not_found', 'invalid_input'],
  }),
  'POST /admin/refunds/send': refunds.changes(
    'Let the refunder send refunds that wait for an operator',
    resultsOf('RefundResult'),
    { body: REFUND_BODY },
  ),
  'POST /admin/refunds/skip': refunds.changes(
    'Close refunds without sending them',
    resultsOf('RefundResult'),
    { body: REFUND_BODY },
  ),
  'POST /admin/claims/void': orders.changes(
    'Take tickets back: a worker voids them, and their slots go on sale again',
    resultsOf('VoidResult'),
    { body: VOID_BODY },
  ),
};
