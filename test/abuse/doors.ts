// Every door, with a request that it would take. The rows of the table are such requests with one thing wrong.

import { createHmac } from 'node:crypto';
import { CLAIM_SECRET } from './furnish.ts';
import { fresh, nowSec, type Place, type Runtime, type Things, type Wire } from './place.ts';
import { webhookDoors } from './webhook_doors.ts';

/** The columns of the table. */
export type Group = 'claim' | 'admin' | 'webhook' | 'call';

export interface Signing {
  readonly secret?: string;
  readonly atSec?: number;
}

export interface Door {
  readonly name: string;
  readonly group: Group;
  readonly method: string;
  /** On the runtimes that have it. */
  readonly paths: { readonly [runtime in Runtime]?: (things: Things) => string };
  /** What the path takes, as the Allow header says it. */
  readonly allow: string;
  readonly maxBytes: number;
  /** JSON text, or a form; doors without it read no body. `id` makes it unlike all others. */
  bodyOf?(place: Place, id: string): string;
  headersOf?(place: Place, id: string): Record<string, string>;
  sign?(place: Place, url: string, body: Uint8Array, signing: Signing): Promise<Record<string, string>>;
  readonly signature?: {
    readonly header: string;
    readonly encoding: 'hex' | 'base64';
    readonly timestamp?: string;
  };
  readonly isForm?: boolean;
  /** Where fields of the event begin; at the first brace where left out. */
  readonly eventStart?: string;
  /** Answers requests without credentials. */
  readonly isPublic?: true;
  /** Opened by the key in its body. */
  readonly isSignIn?: true;
  /** What it answers to a request that is good; 200 where left out. */
  readonly answers?: number;
  /** Its answer never ends, so a test reads only the beginning. */
  readonly isStream?: true;
  /** Reports an outage instead of failing with it. */
  readonly outlivesDatabases?: true;
}

const CLAIM_BYTES = 4 * 1024;
const OPERATOR_BYTES = 64 * 1024;
const SITE_BYTES = 16 * 1024;
/** Slots may come with their labels. */
const LABELS_BYTES = 256 * 1024;
export const SITE = 'abuse-site';
const JSON_TYPE = { 'content-type': 'application/json' };

const claimDoors: Door[] = [
  {
    name: 'POST /v1/pools/:pool/claims',
    group: 'claim',
    method: 'POST',
    paths: { node: ({ pool }) => `/v1/pools/${pool}/claims` },
    allow: 'POST',
    maxBytes: CLAIM_BYTES,
    answers: 201,
    bodyOf: (_, id) => JSON.stringify({ user_id: id, request_id: id }),
    headersOf: () => JSON_TYPE,
  },
  ...['GET', 'DELETE'].map(
    (method): Door => ({
      name: `${method} /v1/claims/:claim`,
      group: 'claim',
      method,
      paths: { node: ({ claimId }) => `/v1/claims/${claimId}` },
      allow: 'GET, DELETE',
      maxBytes: CLAIM_BYTES,
      headersOf: () => ({ 'x-claim-secret': CLAIM_SECRET }),
    }),
  ),
  {
    name: 'POST /v1/claims/:claim/checkout',
    group: 'claim',
    method: 'POST',
    paths: {
      node: ({ orderId }) => `/v1/claims/${orderId}/checkout`,
      deno: ({ orderId }) => `/functions/v1/claims/${orderId}/checkout`,
    },
    allow: 'POST',
    maxBytes: CLAIM_BYTES,
    headersOf: () => ({ 'x-claim-secret': CLAIM_SECRET }),
  },
  ...['', '/challenge'].map(
    (end): Door => ({
      name: `GET /v1/pools/:pool${end}`,
      group: 'claim',
      method: 'GET',
      paths: { node: ({ pool }) => `/v1/pools/${pool}${end}` },
      allow: 'GET',
      maxBytes: CLAIM_BYTES,
      isPublic: true,
    }),
  ),
];

type Change = (things: Things, id: string) => Record<string, unknown>;

function operator(
  method: string,
  path: (things: Things) => string,
  allow: string,
  more: { body?: Change; deno?: (things: Things) => string; maxBytes?: number } & Partial<Door> = {},
): Door {
  const { body, deno, maxBytes = CLAIM_BYTES, ...rest } = more;
  const shown = path({
    pool: ':pool',
    unseenPool: '',
    claimId: ':claim',
    orderId: ':order',
    ticketToken: ':token',
    letterId: 0,
    eventId: ':id',
  });
  return {
    name: `${method} ${shown.replace(/0$/, ':msg_id')}`,
    group: 'admin',
    method,
    paths: { node: path, ...(deno && { deno }) },
    allow,
    maxBytes,
    ...(body && {
      bodyOf: ({ things }: Place, id: string) => JSON.stringify(body(things, id)),
      headersOf: () => JSON_TYPE,
    }),
    ...rest,
  };
}

const letters: Change = ({ letterId }) => ({ msg_ids: [letterId], dry_run: false });
const events: Change = ({ eventId }) => ({ ids: [eventId] });
const onDeno = (path: string) => (): string => `/functions/v1${path}`;

const operatorDoors: Door[] = [
  operator('GET', () => '/admin/dlq', 'GET', { deno: onDeno('/admin-dlq'), maxBytes: OPERATOR_BYTES }),
  operator('GET', ({ letterId }) => `/admin/dlq/${letterId}`, 'GET', {
    deno: ({ letterId }) => `/functions/v1/admin-dlq/${letterId}`,
    maxBytes: OPERATOR_BYTES,
  }),
  ...['replay', 'discard'].map((action) =>
    operator('POST', () => `/admin/dlq/${action}`, 'POST', {
      body: letters,
      deno: onDeno(`/admin-dlq/${action}`),
      maxBytes: OPERATOR_BYTES,
    }),
  ),
  operator('POST', () => '/admin/pools', 'GET, POST', {
    body: (_, id) => ({ pool_id: id, slots: 1 }),
    answers: 201,
  }),
  operator('POST', ({ pool }) => `/admin/pools/${pool}`, 'GET, POST', {
    body: () => ({ add_slots: 1 }),
    maxBytes: LABELS_BYTES,
  }),
  operator('GET', () => '/admin/claims', 'GET'),
  operator('POST', ({ claimId }) => `/admin/claims/${claimId}/release`, 'POST', {
    body: () => ({ reason: 'abuse' }),
  }),
  operator('POST', () => '/v1/tickets/check', 'POST', {
    body: ({ ticketToken }) => ({ token: ticketToken }),
  }),
  operator('GET', () => '/admin/calls', 'GET'),
  operator('GET', () => '/admin/audit', 'GET'),
  operator('GET', () => '/admin/health', 'GET', { outlivesDatabases: true }),
  operator('GET', () => '/admin/live', 'GET', { outlivesDatabases: true, isStream: true }),
  operator('GET', () => '/admin/samples', 'GET', { outlivesDatabases: true }),
  operator('POST', () => '/admin/session', 'POST, GET, DELETE', {
    body: () => ({ key: 'not-the-key' }),
    isSignIn: true,
    // The right key would say nothing about the rows, and a session is nothing to leave about.
    answers: 401,
    outlivesDatabases: true,
  }),
  operator('POST', () => '/admin/webhooks/endpoints', 'GET, POST', {
    body: (_, id) => ({ name: id, provider: 'stripe', secret_names: ['STRIPE_WEBHOOK_SECRET'] }),
    answers: 201,
    maxBytes: OPERATOR_BYTES,
  }),
  operator('POST', () => '/admin/webhooks/endpoints/change', 'POST', {
    body: () => ({ name: 'abuse-stripe', changes: { max_attempts: 3 } }),
    maxBytes: OPERATOR_BYTES,
  }),
  operator('POST', () => '/admin/webhooks/endpoints/rotate', 'POST', {
    body: () => ({ name: 'abuse-stripe', secret_names: ['STRIPE_WEBHOOK_SECRET'] }),
    maxBytes: OPERATOR_BYTES,
  }),
  operator('POST', () => '/admin/sites', 'GET, POST', {
    body: (_, id) => ({ site_id: id, secret_names: ['OPS_SITE_SECRET'] }),
    answers: 201,
    maxBytes: SITE_BYTES,
  }),
  operator('POST', () => '/admin/operators', 'GET, POST', {
    body: (_, id) => ({ name: id, role: 'viewer' }),
    answers: 201,
  }),
  ...['replay', 'skip'].map((action) =>
    operator('POST', () => `/admin/webhooks/events/${action}`, 'POST', {
      body: events,
      maxBytes: OPERATOR_BYTES,
    }),
  ),
  operator('GET', ({ eventId }) => `/admin/webhooks/events/${eventId}`, 'GET', { maxBytes: OPERATOR_BYTES }),
  {
    name: 'POST bridge-worker',
    group: 'admin',
    method: 'POST',
    paths: { deno: onDeno('/bridge-worker') },
    allow: 'POST',
    maxBytes: OPERATOR_BYTES,
    bodyOf: () => '{}',
    headersOf: () => JSON_TYPE,
  },
];

const callDoor: Door = {
  name: 'POST /call-events',
  group: 'call',
  method: 'POST',
  paths: { node: () => '/call-events', deno: onDeno('/call-events') },
  allow: 'POST',
  maxBytes: OPERATOR_BYTES,
  bodyOf: (_, id) =>
    JSON.stringify({ event_id: id, kind: 'ring', occurred_at: '2026-02-24T10:00:00Z', payload: { line: 7 } }),
  headersOf: () => ({ ...JSON_TYPE, 'x-ops-site': SITE }),
  // Our own few lines, so that the door is not checked against itself.
  sign: async (place, _, body, { secret = place.secrets.OPS_SITE_SECRET ?? '', atSec = nowSec() }) => ({
    'x-ops-timestamp': String(atSec),
    'x-ops-signature': createHmac('sha256', secret).update(`${SITE}.${atSec}.`).update(body).digest('hex'),
  }),
  signature: { header: 'x-ops-signature', encoding: 'hex', timestamp: 'x-ops-timestamp' },
};

export const DOORS: readonly Door[] = [...claimDoors, ...operatorDoors, ...webhookDoors, callDoor];

export interface Changes {
  readonly id?: string;
  /** In place of the door's own. */
  readonly body?: string | Uint8Array;
  readonly path?: string;
  readonly method?: string;
  /** After signing; undefined takes a header away. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  readonly signing?: Signing;
}

/** A request that the door takes, but for the changes: signed, or with the operator's key, over what it then says. */
export async function requestTo(door: Door, place: Place, changes: Changes = {}): Promise<Wire> {
  const { id = fresh(), signing = {} } = changes;
  const path = door.paths[place.runtime]?.(place.things);
  if (path === undefined) throw new Error(`${door.name} is not there on ${place.runtime}`);
  const body = changes.body ?? door.bodyOf?.(place, id);
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = (bytes && (await door.sign?.(place, place.url + path, bytes, signing))) ?? {};
  const key: Record<string, string> =
    door.group === 'admin' && !door.isSignIn ? { authorization: `Bearer ${place.operatorKey}` } : {};
  const headers = { ...door.headersOf?.(place, id), ...key, ...signed, ...changes.headers };
  return {
    method: changes.method ?? door.method,
    path: changes.path ?? path,
    headers: Object.fromEntries(
      Object.entries(headers).filter(([, value]) => value !== undefined),
    ) as Wire['headers'],
    ...(body !== undefined && { body }),
  };
}
