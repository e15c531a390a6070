// The doors of providers and call sites, and what operators see of them, described.

import { CALL_BODY } from '../calls/body.ts';
import { EVENTS_QUERY, REPLAY_BODY, SKIP_BODY } from '../webhook/admin.ts';
import { ADD_BODY, CHANGE_BODY } from '../webhook/endpoint_settings.ts';
import { shape } from './buyers.ts';
import type { AnswerSchema, Descriptions } from './document.ts';

const TEXT = { type: 'string' } as const;
const ANYTHING = { type: 'object', description: 'As the case may be.' } as const;
const LIST: AnswerSchema = { type: 'array', items: ANYTHING };

export const PROVIDER_SCHEMAS: { readonly [name: string]: AnswerSchema } = {
  EventResult: shape({ id: TEXT, event_id: { type: ['string', 'null'] }, outcome: TEXT }),
};

const RESULTS = {
  200: {
    description: 'One result per id.',
    schema: shape({ results: { type: 'array', items: { $ref: '#/components/schemas/EventResult' } } }),
  },
};

export const PROVIDER_DESCRIPTIONS: Descriptions = {
  'POST /webhooks/:endpoint': {
    tag: 'webhooks',
    summary: 'Deliver signed events',
    description: 'Let in by the signature that the endpoint’s provider makes over the exact bytes.',
    auth: 'open',
    parameter: 'The endpoint.',
    answers: { 200: { description: 'Recorded, or known already.', schema: ANYTHING } },
    errors: [
      'invalid_json',
      'bad_signature',
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
    auth: 'open',
    body: CALL_BODY,
    answers: { 200: { description: 'Recorded, or a noop.', schema: ANYTHING } },
    errors: ['bad_signature', 'overloaded'],
  },
  'GET /metrics': {
    tag: 'health',
    summary: 'Counts and gauges for Prometheus',
    auth: 'open',
    answers: { 200: { description: 'Prometheus’ text format.', type: 'text/plain', schema: TEXT } },
  },
  'GET /admin/webhooks/endpoints': {
    tag: 'admin: webhooks',
    summary: 'Endpoints; names of secrets, never secrets',
    auth: 'operator',
    answers: { 200: { description: 'Found.', schema: shape({ endpoints: LIST }) } },
  },
  'POST /admin/webhooks/endpoints': {
    tag: 'admin: webhooks',
    summary: 'Add an endpoint',
    auth: 'operator',
    body: ADD_BODY,
    answers: { 201: { description: 'Added.', schema: ANYTHING } },
    errors: ['endpoint_exists'],
  },
  'POST /admin/webhooks/endpoints/change': {
    tag: 'admin: webhooks',
    summary: 'Change an endpoint',
    auth: 'operator',
    body: CHANGE_BODY,
    answers: { 200: { description: 'Changed.', schema: ANYTHING } },
    errors: ['unknown_endpoint'],
  },
  'GET /admin/webhooks/events': {
    tag: 'admin: webhooks',
    summary: 'Stored events, oldest first, without payloads',
    auth: 'operator',
    query: EVENTS_QUERY,
    answers: { 200: { description: 'Found.', schema: shape({ events: LIST }) } },
  },
  'GET /admin/webhooks/events/:id': {
    tag: 'admin: webhooks',
    summary: 'All that is known about an event',
    auth: 'operator',
    parameter: 'Its id.',
    answers: { 200: { description: 'Found.', schema: ANYTHING } },
    errors: ['not_found', 'invalid_input'],
  },
  'POST /admin/webhooks/events/replay': {
    tag: 'admin: webhooks',
    summary: 'Let events go round again',
    auth: 'operator',
    body: REPLAY_BODY,
    answers: RESULTS,
  },
  'POST /admin/webhooks/events/skip': {
    tag: 'admin: webhooks',
    summary: 'Set events aside',
    auth: 'operator',
    body: SKIP_BODY,
    answers: RESULTS,
  },
};
