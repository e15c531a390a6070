// The operators' doors, described.

import { AUDIT_QUERY } from '../console/audit.ts';
import { CLAIM_QUERY, RELEASE_BODY } from '../console/claims.ts';
import { OPERATOR_ADD_BODY, OPERATOR_BODY } from '../console/operators.ts';
import { POOL_DETAILS_BODY } from '../console/pool_details.ts';
import { POOL_CHANGE_BODY, POOL_CREATE_BODY, POOL_QUERY } from '../console/pools.ts';
import { SAMPLES_QUERY } from '../console/samples_route.ts';
import { DEAD_LETTER_BODY, DEAD_LETTER_QUERY } from '../dead_letters.ts';
import { CHECK_BODY } from '../tickets/tickets.ts';
import { ERASE_BODY, EXPORT_BODY } from '../users/routes.ts';
import type { AnswerSchema, Descriptions, RouteDescription } from './document.ts';
import { COUNT, COUNT_OR_NULL, FLAG, shape, TEXT, TEXT_OR_NULL } from './shapes.ts';

export const ANYTHING = { type: 'object', description: 'As the case may be.' } as const;

export const LEVELS = {
  capacity: COUNT,
  available: COUNT_OR_NULL,
  reserved: COUNT_OR_NULL,
  consumed: COUNT_OR_NULL,
} as const;

export const ref = (name: string): AnswerSchema => ({ $ref: `#/components/schemas/${name}` });

/** An object with the list `name` in it. */
export const listIn = (name: string, item: string): AnswerSchema =>
  shape({ [name]: { type: 'array', items: ref(item) } });

export const page = (name: string): AnswerSchema =>
  shape({
    items: { type: 'array', items: ref(name) },
    next: { ...TEXT_OR_NULL, description: 'What to send as `after` for the next page; null: there is none.' },
  });

/** The answer to an action on ids. */
export const resultsOf = (item: string) => ({
  200: { description: 'One result per id.', schema: listIn('results', item) },
});

export const OPERATOR_SCHEMAS: { readonly [name: string]: AnswerSchema } = {
  OperatorPool: shape({
    pool_id: TEXT,
    status: TEXT,
    ...LEVELS,
    is_active: FLAG,
    opens_at: TEXT_OR_NULL,
    closes_at: TEXT_OR_NULL,
    max_per_user: COUNT_OR_NULL,
    hold_sec: COUNT_OR_NULL,
    require_auth: FLAG,
    allow_guests: FLAG,
    max_per_address: COUNT_OR_NULL,
    challenge_difficulty: COUNT_OR_NULL,
    commit_rate_per_sec: COUNT_OR_NULL,
    batch_size: COUNT,
    visibility_timeout_sec: COUNT,
    max_retries: COUNT,
    validation_webhook_url: TEXT_OR_NULL,
    commit_rpc_name: TEXT,
    commit_webhook_url: TEXT_OR_NULL,
    confirm_by: TEXT,
    price: COUNT_OR_NULL,
    currency: TEXT_OR_NULL,
    payment_tenant: TEXT_OR_NULL,
    payment_livemode: FLAG,
    max_quantity: COUNT,
    expire_grace_sec: COUNT,
    refund_by: TEXT,
  }),
  OperatorClaim: shape({
    claim_id: TEXT,
    resource_id: TEXT,
    pool_id: TEXT,
    user_id: TEXT,
    request_id: TEXT_OR_NULL,
    state: TEXT,
    verified: FLAG,
    claimed_at: TEXT,
    hold_until: TEXT_OR_NULL,
    ended_at: TEXT_OR_NULL,
    end_reason: TEXT_OR_NULL,
    ahead: COUNT_OR_NULL,
    ending: FLAG,
    label: TEXT_OR_NULL,
    order: {
      type: ['object', 'null'],
      description: 'As in GET /v1/claims/{claim}; null: one slot that is not paid for.',
    },
  }),
  ClaimWithTimeline: shape({
    claim: ref('OperatorClaim'),
    timeline: { type: 'array', items: shape({ at: TEXT_OR_NULL, what: TEXT, detail: ANYTHING }) },
  }),
  DeadLetter: shape({
    msg_id: COUNT,
    pool_id: TEXT_OR_NULL,
    claim_id: TEXT_OR_NULL,
    resource_id: TEXT_OR_NULL,
    user_id: TEXT_OR_NULL,
    reason: TEXT,
    final_read_ct: TEXT_OR_NULL,
    original_msg_id: TEXT_OR_NULL,
    dead_since: TEXT,
    claim_state: TEXT_OR_NULL,
    message: ANYTHING,
    ending: FLAG,
  }),
  DeadLetterResult: shape(
    {
      msg_id: COUNT,
      outcome: TEXT,
      claim_id: {
        ...TEXT_OR_NULL,
        description: 'Of a discard that is ending, or of a claim that is paid: its claim.',
      },
    },
    ['claim_id'],
  ),
  AuditRow: shape(
    {
      id: COUNT,
      at: TEXT,
      actor: TEXT,
      action: TEXT,
      subject: TEXT,
      reason: TEXT_OR_NULL,
      details: { type: ['object', 'null'], description: 'As the case may be.' },
      written_by: {
        ...TEXT,
        description: 'The session user and role that the database saw; the actor is who the caller said.',
      },
      changed: {
        type: ['array', 'null'],
        items: ANYTHING,
        description: 'What the transaction changed of the rules: table, did, before and after.',
      },
      db: { ...COUNT, description: 'Where rows of both databases are told: whose it is.' },
      cell: { ...TEXT, description: 'Where there are several cells: whose it is.' },
    },
    ['db', 'cell'],
  ),
  TicketCheck: shape({
    outcome: {
      type: 'string',
      pattern: '^(valid|used|voided|unknown)$',
      description: 'valid: let the person in; the ticket is used from now on.',
    },
    used_at: { ...TEXT_OR_NULL, description: 'Of a valid ticket: now.' },
    used_by: { ...TEXT_OR_NULL, description: 'The operator who checked it first.' },
    pool_id: TEXT_OR_NULL,
    resource_id: TEXT_OR_NULL,
    title: TEXT_OR_NULL,
    seat: { ...TEXT_OR_NULL, description: "The slot's label, or its short number." },
  }),
  UserData: shape({
    database: TEXT,
    place: { ...TEXT, description: 'A table.' },
    rows: { type: 'array', items: ANYTHING },
  }),
  Erasure: shape({
    status: { ...TEXT, description: 'erased, nothing (no database knew the user) or working' },
    replacement: { ...TEXT_OR_NULL, description: 'What stands in the place of the id now.' },
    changed: { type: 'object', description: 'Rows changed, by database and table.' },
    waits_for: { ...TEXT_OR_NULL, description: 'What a worker has now, where status is working.' },
  }),
  Operator: shape({
    name: TEXT,
    role: { ...TEXT, description: 'viewer, scanner, operator or admin' },
    key_made_at: TEXT,
    last_used_at: TEXT_OR_NULL,
    revoked_at: { ...TEXT_OR_NULL, description: 'Null: the key opens what the role allows.' },
  }),
  OperatorKey: shape({ name: TEXT, key: { ...TEXT, description: 'It is not shown again.' } }),
  HealthCheck: shape({ kind: TEXT, name: TEXT, status: TEXT, summary: TEXT, detail: ANYTHING }),
};

const POOL_ID = 'The pool.';
const OPERATOR_NAME = 'The name.';

/** Routes for operators under one tag: those that read, and those that change something. */
export function operators(tag: string) {
  type More = Partial<RouteDescription>;
  return {
    reads: (summary: string, schema: AnswerSchema, more: More = {}): RouteDescription => ({
      tag,
      summary,
      auth: 'operator',
      answers: { 200: { description: 'Found.', schema } },
      ...more,
    }),
    changes: (summary: string, answers: RouteDescription['answers'], more: More): RouteDescription => ({
      tag,
      summary,
      auth: 'operator',
      answers,
      ...more,
    }),
  };
}

const general = operators('admin');
const pools = operators('admin: pools');
const claims = operators('admin: claims');
const letters = operators('admin: dead letters');
const tickets = operators('tickets');
const users = operators('admin: users');
const people = operators('admin: operators');

const RESULTS = resultsOf('DeadLetterResult');

export const OPERATOR_DESCRIPTIONS: Descriptions = {
  'GET /admin/pools': pools.reads('Pools with their rules and levels', page('OperatorPool'), {
    query: POOL_QUERY,
  }),
  'POST /admin/pools': pools.changes(
    'Create a pool with slots, in one transaction',
    { 201: { description: 'Created.', schema: ref('OperatorPool') } },
    { body: POOL_CREATE_BODY, errors: ['pool_exists', 'request_conflict'] },
  ),
  'GET /admin/pools/:pool': pools.reads('One pool', ref('OperatorPool'), {
    parameter: POOL_ID,
    errors: ['unknown_pool'],
  }),
  'POST /admin/pools/:pool': pools.changes(
    'Change rules, add slots',
    { 200: { description: 'Changed.', schema: ref('OperatorPool') } },
    { parameter: POOL_ID, body: POOL_CHANGE_BODY, errors: ['unknown_pool', 'request_conflict'] },
  ),
  'GET /admin/pools/:pool/details': pools.reads('What buyers read about a pool', ref('PoolDetails'), {
    parameter: POOL_ID,
    errors: ['unknown_pool'],
  }),
  'POST /admin/pools/:pool/details': pools.changes(
    'Change what buyers read about a pool',
    { 200: { description: 'Changed.', schema: ref('PoolDetails') } },
    { parameter: POOL_ID, body: POOL_DETAILS_BODY, errors: ['unknown_pool'] },
  ),
  'GET /admin/claims': claims.reads('Search claims, newest first', page('OperatorClaim'), {
    query: CLAIM_QUERY,
  }),
  'GET /admin/claims/:claim': claims.reads(
    'A claim and its way from the door to the ledger',
    ref('ClaimWithTimeline'),
    { parameter: 'The claim_id.', errors: ['unknown_claim', 'invalid_input'] },
  ),
  'POST /admin/claims/:claim/release': claims.changes(
    'Give a slot back for its owner',
    {
      200: { description: 'Released, now or before.', schema: ref('OperatorClaim') },
      202: {
        description: 'Ending: a worker has it, and the ledger is told first.',
        schema: ref('OperatorClaim'),
      },
    },
    {
      parameter: 'The claim_id.',
      body: RELEASE_BODY,
      errors: ['unknown_claim', 'in_flight', 'already_committed', 'dead_letter', 'wrong_isolation'],
    },
  ),
  'GET /admin/dlq': letters.reads('Dead letters, oldest first', listIn('messages', 'DeadLetter'), {
    query: DEAD_LETTER_QUERY,
  }),
  'GET /admin/dlq/:msg_id': letters.reads('One dead letter', ref('DeadLetter'), {
    parameter: 'Its msg_id.',
    errors: ['not_found', 'invalid_input'],
  }),
  'POST /admin/dlq/replay': letters.changes('Send dead letters round again', RESULTS, {
    body: DEAD_LETTER_BODY,
  }),
  'POST /admin/dlq/discard': letters.changes('End their claims, free their slots', RESULTS, {
    body: DEAD_LETTER_BODY,
  }),
  'POST /v1/tickets/check': tickets.changes(
    'Check a ticket in at the entrance',
    { 200: { description: 'Looked at, and used where it was valid.', schema: ref('TicketCheck') } },
    {
      description:
        'A ticket is valid once, whichever server is asked. After a lost answer the second says used: used_at and used_by tell by whom.',
      body: CHECK_BODY,
      errors: ['no_ticket_links', 'wrong_isolation'],
    },
  ),
  'POST /admin/users/export': users.reads(
    'All that is known about a user',
    shape({
      found: { type: 'array', items: ref('UserData') },
      next: { ...TEXT_OR_NULL, description: 'What to send as `after`; null: that was all.' },
    }),
    { body: EXPORT_BODY, errors: ['cell_unavailable'] },
  ),
  'POST /admin/users/erase': users.changes(
    'Erase a user from all databases',
    {
      200: { description: 'Done, or there was nothing.', schema: ref('Erasure') },
      202: { description: 'Not yet: ask again, and it goes on.', schema: ref('Erasure') },
    },
    { body: ERASE_BODY, errors: ['cell_unavailable'] },
  ),
  'GET /admin/operators': people.reads('The people with keys, without their keys', page('Operator')),
  'POST /admin/operators': people.changes(
    'Add a person, and make a key',
    { 201: { description: 'Added; a revoked person comes back.', schema: ref('OperatorKey') } },
    { body: OPERATOR_ADD_BODY, errors: ['owner_required'] },
  ),
  'POST /admin/operators/:operator/rotate': people.changes(
    'Make a new key; the old one and its sessions end within a second',
    { 200: { description: 'Rotated.', schema: ref('OperatorKey') } },
    { parameter: OPERATOR_NAME, body: OPERATOR_BODY, errors: ['owner_required'] },
  ),
  'POST /admin/operators/:operator/revoke': people.changes(
    'End a key and its sessions within a second',
    { 200: { description: 'Revoked, now or before.', schema: shape({ name: TEXT, revoked: FLAG }) } },
    { parameter: OPERATOR_NAME, body: OPERATOR_BODY, errors: ['owner_required'] },
  ),
  'GET /admin/audit': general.reads('What operators did, newest first', page('AuditRow'), {
    query: AUDIT_QUERY,
  }),
  'GET /admin/health': general.reads('Databases, extensions, jobs, workers', page('HealthCheck')),
  'GET /admin/live': general.reads('Follow all numbers', ref('LiveSample'), {
    description:
      'Server-sent events: `event: sample` at once, then every two seconds. What was before: GET /admin/samples.',
    answers: {
      200: { description: 'The stream.', type: 'text/event-stream', schema: ref('LiveSample') },
    },
    errors: ['overloaded'],
  }),
  'GET /admin/samples': general.reads('What is remembered of a time', ref('SampleHistory'), {
    query: SAMPLES_QUERY,
    description:
      'Samples of up to 30 days as rows, and what happened meanwhile. A database that does not answer is left out and named.',
  }),
};
