// Search, the lists behind it, totals and exports, described.

import { CREDIT_QUERY, PAYMENT_QUERY } from '../console/payments.ts';
import { TICKET_QUERY } from '../console/tickets.ts';
import { EXPORT_LISTS, EXPORT_QUERY } from '../search/exports.ts';
import { KINDS, SEARCH_QUERY } from '../search/search.ts';
import type { AnswerSchema, Descriptions } from './document.ts';
import { operators, page, ref } from './operators.ts';
import { COUNT, COUNT_OR_NULL, FLAG, shape, TEXT, TEXT_OR_NULL } from './shapes.ts';

const AMOUNT = { ...COUNT, description: 'In minor units.' } as const;
const listOf = (items: AnswerSchema): AnswerSchema => ({ type: 'array', items });
const AWAY = listOf({ ...TEXT, description: 'A database that could not be asked.' });
const TIMELINE = listOf(
  shape({ at: TEXT_OR_NULL, what: TEXT, detail: { type: 'object', description: 'As the case may be.' } }),
);

export const SEARCH_SCHEMAS: { readonly [name: string]: AnswerSchema } = {
  Found: shape(
    {
      kind: { type: 'string', pattern: `^(${KINDS.join('|')})$` },
      id: { ...TEXT, description: 'What its page is called by.' },
      ref: { ...TEXT_OR_NULL, description: 'What it leads to, or is also called.' },
      pool_id: TEXT_OR_NULL,
      user_id: TEXT_OR_NULL,
      state: TEXT_OR_NULL,
      at: TEXT_OR_NULL,
      why: { ...TEXT, description: 'What of it was asked for.' },
      db: { ...COUNT, description: '1 the intake, 2 the ledger.' },
      cell: { ...TEXT, description: 'Where there are several cells: the one that has it.' },
    },
    ['cell'],
  ),
  Ticket: shape({
    claim_id: TEXT,
    resource_id: TEXT,
    pool_id: TEXT,
    user_id: TEXT,
    verified: FLAG,
    order_id: TEXT_OR_NULL,
    state: { ...TEXT, description: 'valid, used or void' },
    confirmed_at: TEXT,
    used_at: TEXT_OR_NULL,
    used_by: TEXT_OR_NULL,
    voided_at: TEXT_OR_NULL,
    cause: TEXT_OR_NULL,
  }),
  Payment: shape({
    payment_key: { ...TEXT, description: 'tenant/payment' },
    provider: { ...TEXT, description: 'The tenant.' },
    object_id: TEXT,
    user_id: TEXT_OR_NULL,
    state: TEXT,
    amount: COUNT_OR_NULL,
    captured: AMOUNT,
    refunded: AMOUNT,
    disputed: COUNT_OR_NULL,
    currency: TEXT_OR_NULL,
    order_id: TEXT_OR_NULL,
    occurred_at: TEXT,
  }),
  Credit: shape({
    id: COUNT,
    created_at: TEXT,
    user_id: TEXT,
    amount: AMOUNT,
    currency: TEXT,
    kind: TEXT,
    provider: TEXT,
    object_id: TEXT,
    event_id: TEXT,
    business_key: TEXT,
  }),
  Total: shape({
    total: COUNT,
    how: {
      type: 'string',
      pattern: '^(exact|at_least|about)$',
      description: 'at_least: counted so far and no further. about: from statistics or a sample.',
    },
  }),
};

const general = operators('admin');
const tickets = operators('admin: tickets');
const money = operators('admin: payments');
const users = operators('admin: users');

export const SEARCH_DESCRIPTIONS: Descriptions = {
  'GET /admin/search': general.reads(
    'Find anything by its id, the beginning of it, or its name',
    shape({
      q: TEXT,
      groups: listOf(shape({ kind: TEXT, items: listOf(ref('Found')), has_more: FLAG })),
      away: AWAY,
    }),
    { query: SEARCH_QUERY },
  ),
  'GET /admin/totals/:list': general.reads('How many rows a list has, with its filters', ref('Total'), {
    description: 'Takes the filters of the list.',
    parameter: EXPORT_LISTS,
    errors: ['not_found', 'invalid_input', 'cell_unavailable'],
  }),
  'GET /admin/export/:list': general.reads('All rows of a list, with its filters, as a file', TEXT, {
    description: 'Takes the filters of the list, and `format`: csv or json. The file is streamed.',
    parameter: EXPORT_LISTS,
    query: EXPORT_QUERY,
    answers: { 200: { description: 'The file.', type: 'text/csv', schema: TEXT } },
    errors: ['not_found', 'invalid_input', 'cell_unavailable', 'overloaded'],
  }),
  'GET /admin/tickets': tickets.reads('Search tickets, newest first', page('Ticket'), {
    query: TICKET_QUERY,
  }),
  'GET /admin/tickets/:ticket': tickets.reads(
    'A ticket with the way of its claim',
    shape({ ticket: ref('Ticket'), is_claim_known: FLAG, timeline: TIMELINE }),
    { parameter: 'Its claim_id.', errors: ['not_found', 'invalid_input'] },
  ),
  'GET /admin/payments': money.reads('Search payments', page('Payment'), {
    query: PAYMENT_QUERY,
    description: 'By tenant and id, the last first.',
  }),
  'GET /admin/payments/:payment': money.reads(
    'A payment with all that moved it and all that it moved',
    shape({
      payment: ref('Payment'),
      credits: listOf(ref('Credit')),
      provider_refunds: listOf(shape({ refund_id: TEXT, amount: AMOUNT, failed_at: TEXT_OR_NULL })),
      transactions: listOf(shape({ transaction_id: TEXT, amount: AMOUNT })),
      refunds: listOf(ref('Refund')),
      timeline: TIMELINE,
    }),
    { parameter: 'tenant/payment, with %2F for the slash.', errors: ['not_found', 'invalid_input'] },
  ),
  'GET /admin/credits': money.reads('Rows of the credit ledger, newest first', page('Credit'), {
    query: CREDIT_QUERY,
  }),
  'GET /admin/users/:user/summary': users.reads(
    "A user's balance, and what operators did to the user",
    shape({
      user_id: TEXT,
      balance: {
        type: ['array', 'null'],
        items: shape({ provider: TEXT, currency: TEXT, amount: AMOUNT }),
      },
      audit: listOf(ref('AuditRow')),
      away: AWAY,
    }),
    { parameter: 'The user_id.', errors: ['invalid_input'] },
  ),
};
