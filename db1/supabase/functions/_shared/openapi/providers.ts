// The doors of providers and call sites, and what operators see of them, described.

import { CALL_BODY } from '../calls/body.ts';
import { SITE_ADD_BODY, SITE_CHANGE_BODY, SITE_QUERY, SITE_ROTATE_BODY } from '../calls/operators.ts';
import { CALL_QUERY } from '../console/calls.ts';
import { INBOX_BODY, INBOX_QUERY } from '../inbox/operators.ts';
import { EVENTS_QUERY, REPLAY_BODY, SKIP_BODY } from '../webhook/admin.ts';
import { ADD_BODY, CHANGE_BODY, ROTATE_BODY } from '../webhook/endpoint_settings.ts';
import { NAME_BODY, PAYMENTS_QUERY } from '../webhook/unnamed_payments.ts';
import type { AnswerSchema, Descriptions } from './document.ts';
import { listIn, operators, page, ref, resultsOf } from './operators.ts';
import { COUNT, COUNT_OR_NULL, FLAG, shape, TEXT, TEXT_OR_NULL } from './shapes.ts';

const ANYTHING = { type: 'object', description: 'As the provider sends it.' } as const;
const ANYTHING_OR_NULL = { ...ANYTHING, type: ['object', 'null'] } as const;

const EVENT = {
  id: TEXT,
  webhook_id: TEXT,
  name: TEXT_OR_NULL,
  provider: { ...TEXT, description: 'The tenant: a provider’s name, or `provider:endpoint`.' },
  event_id: TEXT,
  event_type: TEXT,
  occurred_at: TEXT_OR_NULL,
  received_at: TEXT,
  processed_at: TEXT_OR_NULL,
  last_attempt_at: TEXT_OR_NULL,
  next_attempt_at: TEXT_OR_NULL,
  status: TEXT,
  attempts: COUNT,
  takeovers: COUNT,
  error: TEXT_OR_NULL,
  skipped_by: TEXT_OR_NULL,
  backfilled: { ...FLAG, description: 'We asked the provider for it.' },
};
const CALL = {
  id: TEXT,
  site_id: TEXT,
  event_id: TEXT_OR_NULL,
  kind: TEXT,
  occurred_at: TEXT,
  received_at: TEXT,
};

export const PROVIDER_SCHEMAS: { readonly [name: string]: AnswerSchema } = {
  InboxDelivery: shape({
    msg_id: COUNT,
    kind: { ...TEXT, description: 'event or call' },
    door: { ...TEXT, description: 'The endpoint’s name, or the site’s id.' },
    ids: { type: 'array', items: TEXT },
    received_at: TEXT,
    attempts: COUNT,
    error: TEXT_OR_NULL,
    dead_since: { ...TEXT_OR_NULL, description: 'Null where it waits.' },
  }),
  InboxResult: shape({ msg_id: COUNT, outcome: TEXT }),
  Endpoint: shape({
    webhook_id: TEXT,
    name: TEXT,
    provider: TEXT,
    tenant: { ...TEXT, description: 'What its events, payments and credits have as their provider.' },
    livemode: TEXT,
    accounts: { type: 'array', items: TEXT },
    mode: TEXT,
    on_outage: { ...TEXT, description: 'refuse or accept: what a delivery is answered while DB2 is away.' },
    secret_names: { type: 'array', items: TEXT },
    verify_token_name: TEXT_OR_NULL,
    api_key_name: TEXT_OR_NULL,
    public_url: TEXT_OR_NULL,
    scheme: { ...ANYTHING_OR_NULL, description: 'How the provider `hmac` signs here.' },
    max_attempts: COUNT,
    backoff_cap_sec: COUNT,
    lease_sec: COUNT,
    max_body_bytes: COUNT,
    keep_payload_days: COUNT_OR_NULL,
    is_active: FLAG,
    created_at: TEXT,
    compared_at: { ...TEXT_OR_NULL, description: 'When the last hourly comparison with the provider began.' },
    secret_fault: { ...TEXT_OR_NULL, description: 'Why the server cannot use one of its secrets.' },
  }),
  Event: shape(EVENT),
  EventWithBodies: shape({
    ...EVENT,
    payload: ANYTHING_OR_NULL,
    payload_hash: TEXT_OR_NULL,
    dedupe_hash: TEXT_OR_NULL,
    signature: TEXT_OR_NULL,
    idempotency_key: TEXT_OR_NULL,
    body_id: TEXT_OR_NULL,
    lease_until: TEXT_OR_NULL,
    waiting_since: TEXT_OR_NULL,
    arrival: COUNT,
    raw_body: TEXT_OR_NULL,
    alarms: { type: 'array', items: { type: 'object', description: 'The same id with another body.' } },
    handler: { ...TEXT_OR_NULL, description: 'The handler that has it.' },
    max_attempts: { ...COUNT, description: 'After so many that failed it is a dead letter.' },
    links: shape({
      payments: {
        type: 'array',
        items: shape({ payment_key: TEXT, order_id: TEXT_OR_NULL, user_id: TEXT_OR_NULL, state: TEXT }),
      },
      credits: { ...COUNT, description: 'Rows of the credit ledger that it wrote.' },
      audit: { type: 'array', items: ref('AuditRow') },
    }),
  }),
  EventResult: shape({ id: TEXT, event_id: TEXT_OR_NULL, outcome: TEXT }),
  UnnamedPayment: shape({
    provider: { ...TEXT, description: 'The tenant.' },
    object_id: TEXT,
    user_id: TEXT_OR_NULL,
    state: TEXT,
    told: TEXT,
    occurred_at: TEXT,
    arrival: COUNT,
    last_event_id: TEXT,
    amount: COUNT_OR_NULL,
    held: COUNT_OR_NULL,
    currency: TEXT_OR_NULL,
    captured: COUNT,
    refund_told: COUNT,
    refund_told_at: TEXT,
    refunded: COUNT,
    disputed: COUNT_OR_NULL,
    changes: COUNT,
  }),
  CallSite: shape({
    site_id: TEXT,
    secret_names: { type: 'array', items: TEXT },
    require_signature: FLAG,
    kinds: { type: ['array', 'null'], items: TEXT, description: 'Null is any.' },
    is_active: FLAG,
    on_outage: { ...TEXT, description: 'refuse or accept: what a call is answered while DB2 is away.' },
    created_at: TEXT,
    secret_fault: { ...TEXT_OR_NULL, description: 'Why the server cannot use one of its secrets.' },
  }),
  Call: shape({ ...CALL, is_signed: FLAG }),
  CallWithPayload: shape({ ...CALL, payload: ANYTHING_OR_NULL, signature_hash: TEXT_OR_NULL }),
};

const CALL_ANSWER: AnswerSchema = {
  type: 'object',
  properties: { status: TEXT, id: TEXT, reason: TEXT },
  required: ['status'],
};

const RESULTS = resultsOf('EventResult');
const webhooks = operators('admin: webhooks');
const calls = operators('admin: calls');
const SITE_ID = 'Its id.';
const CHANGED_SITE = { 200: { description: 'Changed.', schema: ref('CallSite') } };

export const PROVIDER_DESCRIPTIONS: Descriptions = {
  'POST /webhooks/:endpoint': {
    tag: 'webhooks',
    summary: 'Deliver signed events',
    description: 'Let in by the signature that the endpoint’s provider makes over the exact bytes.',
    auth: 'open',
    parameter: 'The endpoint.',
    answers: {
      200: {
        description:
          'Recorded, or known already; accepted where DB2 is away, the inbox has it, and the endpoint accepts then.',
        schema: shape({
          status: TEXT,
          events: { type: 'array', items: shape({ event_id: TEXT, status: TEXT }) },
        }),
      },
    },
    errors: [
      'invalid_json',
      'bad_signature',
      'rate_limited',
      'unknown_endpoint',
      'too_large',
      'unsupported_media_type',
      'processing_failed',
      'overloaded',
    ],
  },
  'GET /webhooks/:endpoint': {
    tag: 'webhooks',
    summary: 'WhatsApp’s handshake',
    auth: 'open',
    parameter: 'The endpoint.',
    answers: { 200: { description: 'The challenge.', type: 'text/plain', schema: TEXT } },
    errors: ['handshake_refused', 'unknown_endpoint', 'method_not_allowed'],
  },
  'POST /call-events': {
    tag: 'call events',
    summary: 'Deliver a signed call event',
    description: 'Beside these fields stands `payload`, any object. x-ops-signature signs the exact bytes.',
    auth: 'open',
    body: CALL_BODY,
    answers: {
      200: {
        description: 'Recorded, with its id; a noop, with the reason; or accepted into the inbox.',
        schema: CALL_ANSWER,
      },
    },
    errors: ['bad_signature', 'rate_limited', 'event_conflict', 'overloaded'],
  },
  'GET /metrics': {
    tag: 'health',
    summary: 'Counts and gauges for Prometheus',
    description:
      'SLUICE_METRICS_TOKEN, sent as Bearer, may read this too; with SLUICE_METRICS_OPEN=1 it needs no key. The page is made once a second at most.',
    auth: 'operator',
    answers: { 200: { description: 'Prometheus’ text format.', type: 'text/plain', schema: TEXT } },
  },
  'GET /admin/webhooks/inbox': webhooks.reads(
    'Deliveries that were accepted while DB2 was away, oldest first',
    listIn('deliveries', 'InboxDelivery'),
    { query: INBOX_QUERY },
  ),
  'POST /admin/webhooks/inbox/replay': webhooks.changes(
    'Send dead letters of the inbox round again',
    resultsOf('InboxResult'),
    { body: INBOX_BODY },
  ),
  'POST /admin/webhooks/inbox/discard': webhooks.changes(
    'Give dead letters of the inbox up',
    resultsOf('InboxResult'),
    { body: INBOX_BODY },
  ),
  'GET /admin/webhooks/endpoints': webhooks.reads(
    'Endpoints; names of secrets, never secrets',
    listIn('endpoints', 'Endpoint'),
  ),
  'POST /admin/webhooks/endpoints': webhooks.changes(
    'Add an endpoint',
    { 201: { description: 'Added.', schema: ref('Endpoint') } },
    { body: ADD_BODY, errors: ['endpoint_exists'] },
  ),
  'POST /admin/webhooks/endpoints/change': webhooks.changes(
    'Change an endpoint',
    { 200: { description: 'Changed.', schema: ref('Endpoint') } },
    { body: CHANGE_BODY, errors: ['unknown_endpoint'] },
  ),
  'POST /admin/webhooks/endpoints/rotate': webhooks.changes(
    'Put new secrets of an endpoint first; those of before stay good until a rotation with `only`',
    { 200: { description: 'Rotated.', schema: ref('Endpoint') } },
    { body: ROTATE_BODY, errors: ['unknown_endpoint'] },
  ),
  'GET /admin/webhooks/events': webhooks.reads(
    'Stored events, newest first, without payloads',
    listIn('events', 'Event'),
    { query: EVENTS_QUERY },
  ),
  'GET /admin/webhooks/payments': webhooks.reads(
    'Payments that moved money while no event names their user',
    listIn('payments', 'UnnamedPayment'),
    { query: PAYMENTS_QUERY },
  ),
  'POST /admin/webhooks/payments/name': webhooks.changes(
    'Say whose such a payment is: its credits are written',
    { 200: { description: 'Named.', schema: shape({ named: FLAG }) } },
    { body: NAME_BODY, errors: ['not_found'] },
  ),
  'GET /admin/webhooks/events/:id': webhooks.reads(
    'All that is known about an event',
    ref('EventWithBodies'),
    { parameter: 'Its id.', errors: ['not_found', 'invalid_input'] },
  ),
  'POST /admin/webhooks/events/replay': webhooks.changes('Let events go round again', RESULTS, {
    body: REPLAY_BODY,
  }),
  'POST /admin/webhooks/events/skip': webhooks.changes('Set events aside', RESULTS, { body: SKIP_BODY }),
  'GET /admin/sites': calls.reads('Call sites; names of secrets, never secrets', page('CallSite'), {
    query: SITE_QUERY,
  }),
  'POST /admin/sites': calls.changes(
    'Add a call site',
    { 201: { description: 'Added.', schema: ref('CallSite') } },
    { body: SITE_ADD_BODY, errors: ['site_exists'] },
  ),
  'GET /admin/sites/:site': calls.reads('One call site', ref('CallSite'), {
    parameter: SITE_ID,
    errors: ['unknown_site', 'invalid_input'],
  }),
  'POST /admin/sites/:site': calls.changes('Change a call site', CHANGED_SITE, {
    parameter: SITE_ID,
    body: SITE_CHANGE_BODY,
    errors: ['unknown_site'],
  }),
  'POST /admin/sites/:site/rotate': calls.changes(
    'Put new secrets of a call site first; those of before stay good until a rotation with `only`',
    CHANGED_SITE,
    { parameter: SITE_ID, body: SITE_ROTATE_BODY, errors: ['unknown_site'] },
  ),
  'GET /admin/calls': calls.reads('Call events, newest first, without payloads', page('Call'), {
    query: CALL_QUERY,
  }),
  'GET /admin/calls/:id': calls.reads('One call event', ref('CallWithPayload'), {
    parameter: 'Its id.',
    errors: ['not_found', 'invalid_input'],
  }),
};
