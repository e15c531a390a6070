// Pools as operators see and change them.

import type { CallFunction } from '../call_function.ts';
import { HttpError } from '../errors.ts';
import { operatorOf, REASON } from '../operator.ts';
import type { PoolStatus } from '../pool.ts';
import { readQuery } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';
import { DEFAULT_LIMIT, GIVEN_ID, LIMIT, offsetOf, PAGE, pageOf, withReason } from './list.ts';

/** A row of public.pool_list. The levels are null while the pool's cache is lost; see intake.pool_levels. */
export interface PoolView extends Omit<PoolStatus, 'available' | 'details'> {
  readonly available: number | null;
  readonly reserved: number | null;
  readonly consumed: number | null;
  readonly is_active: boolean;
  readonly commit_rate_per_sec: number | null;
  readonly batch_size: number;
  readonly visibility_timeout_sec: number;
  readonly max_retries: number;
  readonly validation_webhook_url: string | null;
  readonly commit_rpc_name: string;
  readonly commit_webhook_url: string | null;
  readonly payment_tenant: string | null;
  readonly payment_livemode: boolean;
  readonly expire_grace_sec: number;
  readonly refund_by: 'sluice' | 'operator';
  /** Where there are several cells: the one that it lives in. */
  readonly cell?: string;
}

/** One transaction; a million slots take it about a quarter of a minute. See slot_steps.ts for the way without the wait. */
const MAX_SLOTS = 1_000_000;
const MAX_INT = 2_147_483_647;

export const TIME = {
  type: ['string', 'null'],
  maxLength: 40,
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,6})?)?(Z|[+-]\\d\\d:\\d\\d)$',
  description: 'ISO 8601 with an offset, or null.',
} as const satisfies Schema;
const COUNT = { type: ['integer', 'null'], minimum: 1, maximum: MAX_INT } as const satisfies Schema;
const URL_OR_NULL = { type: ['string', 'null'], maxLength: 2_000 } as const satisfies Schema;
const SLOTS = { type: 'integer', minimum: 0, maximum: MAX_SLOTS } as const satisfies Schema;
const REQUEST_ID = {
  ...GIVEN_ID,
  description: 'Makes it safe to ask again: the same id for the same pool changes nothing the second time.',
} as const satisfies Schema;

/** A label is 100 characters at most, and 400 bytes. */
const MAX_LABELS = 500;
/** For as many labels as that. */
const MAX_BODY_BYTES = 256 * 1024;

const RULES = {
  is_active: { type: 'boolean', description: 'False closes the pool.' },
  opens_at: TIME,
  closes_at: TIME,
  max_per_user: COUNT,
  hold_sec: COUNT,
  require_auth: { type: 'boolean' },
  allow_guests: { type: 'boolean', description: 'With require_auth: anonymous sign-ins are enough.' },
  max_per_address: { ...COUNT, description: 'Slots that the buyers of one network address hold together.' },
  challenge_difficulty: {
    type: ['integer', 'null'],
    minimum: 1_000,
    maximum: 100_000_000,
    description: 'Claims need a proof of work of about half as many hashes; null asks for none.',
  },
  commit_rate_per_sec: { ...COUNT, description: 'At most so many tickets a second; null sets no limit.' },
  batch_size: { type: 'integer', minimum: 1, maximum: 10_000 },
  visibility_timeout_sec: { type: 'integer', minimum: 1, maximum: 43_200 },
  // The table takes 1 as well, because old callers set it.
  max_retries: {
    type: 'integer',
    minimum: 2,
    maximum: 1_000,
    description:
      'A message becomes a dead letter when its attempts reach this number: N means N - 1 tries, and with 1 no claim would be tried at all. Deliveries that met an outage do not count.',
  },
  validation_webhook_url: URL_OR_NULL,
  commit_rpc_name: { type: 'string', pattern: '^[a-z_][a-z0-9_]{0,62}$' },
  commit_webhook_url: URL_OR_NULL,
  confirm_by: {
    type: 'string',
    pattern: '^(auto|payment)$',
    description:
      'What makes a ticket of a claim: auto, the bridge at once; payment, once its price was paid within hold_sec.',
  },
  price: {
    type: ['integer', 'null'],
    minimum: 1,
    // As far as Stripe goes in any currency: 12 digits in rupiah.
    maximum: 999_999_999_999,
    description: 'Of one slot, in minor units of the currency, such as cents.',
  },
  currency: { type: ['string', 'null'], pattern: '^[a-z]{3}$', description: 'ISO 4217, in lower case.' },
  payment_tenant: {
    type: ['string', 'null'],
    maxLength: 200,
    description: 'Whose payments count: the tenant of the webhook endpoint that tells them.',
  },
  payment_livemode: {
    type: 'boolean',
    description: 'False: payments of the test mode count, and no others.',
  },
  max_quantity: {
    type: 'integer',
    minimum: 1,
    maximum: 10,
    description: 'How many slots one request may claim together.',
  },
  expire_grace_sec: {
    type: 'integer',
    minimum: 5,
    maximum: 600,
    description:
      'How long a hold that is over waits for the provider to close the payment, before its slots are sold again all the same.',
  },
  refund_by: {
    type: 'string',
    pattern: '^(sluice|operator)$',
    description: 'Who sends back what a payment could not buy.',
  },
} as const satisfies Record<string, Schema>;

export const POOL_CREATE_BODY = {
  type: 'object',
  properties: {
    // What a path holds unescaped. Pools made in SQL may be called more (public.given_pool_id): every door takes them escaped.
    pool_id: { ...GIVEN_ID, pattern: '^(?!\\.{1,2}$)[A-Za-z0-9._~:@-]+$' },
    slots: SLOTS,
    cell: {
      type: 'string',
      minLength: 1,
      maxLength: 32,
      description:
        'The cell that it shall live in, where there are several; the one with the fewest pools where left out.',
    },
    request_id: REQUEST_ID,
    reason: REASON,
    ...RULES,
  },
  required: ['pool_id', 'slots'],
  additionalProperties: false,
} as const satisfies Schema;

export const POOL_CHANGE_BODY = {
  type: 'object',
  properties: {
    add_slots: SLOTS,
    labels: {
      type: 'array',
      items: { type: 'string', minLength: 1, maxLength: 100 },
      minItems: 1,
      maxItems: MAX_LABELS,
      description: 'Adds a slot for each, which tickets call by it. Instead of add_slots.',
    },
    request_id: REQUEST_ID,
    reason: REASON,
    ...RULES,
  },
  additionalProperties: false,
} as const satisfies Schema;

export const POOL_QUERY = {
  type: 'object',
  properties: { after: GIVEN_ID, page: PAGE, limit: LIMIT },
  additionalProperties: false,
} as const satisfies Schema;

export function poolAdminRoutes(db1: CallFunction): Route[] {
  return [
    { method: 'GET', path: '/admin/pools', handle: (request) => list(db1, request) },
    { method: 'POST', path: '/admin/pools', handle: (request) => create(db1, request) },
    { method: 'GET', path: '/admin/pools/:pool', handle: (_, pool) => show(db1, pool) },
    {
      method: 'POST',
      path: '/admin/pools/:pool',
      maxBodyBytes: MAX_BODY_BYTES,
      handle: (request, pool) => change(db1, request, pool),
    },
  ];
}

async function list(db1: CallFunction, request: HttpRequest): Promise<HttpResponse> {
  const { after, page, limit = DEFAULT_LIMIT } = readQuery(request.query, POOL_QUERY);
  const pools = await db1<PoolView>('pool_list', {
    p_after: after ?? '',
    p_limit: limit,
    p_offset: offsetOf({ page, after, limit }),
  });
  return pageOf(pools, limit, (pool) => pool.pool_id);
}

async function show(db1: CallFunction, poolId: string): Promise<HttpResponse> {
  return one(200, await db1<PoolView>('pool_list', { p_pool_id: poolId }));
}

async function create(db1: CallFunction, request: HttpRequest): Promise<HttpResponse> {
  const { pool_id, slots, cell, request_id, reason, ...rules } = readJson(request, POOL_CREATE_BODY);
  const pools = db1<PoolView>('pool_create', {
    p_pool_id: pool_id,
    p_slots: slots,
    p_rules: rules,
    p_actor: operatorOf(request),
    p_reason: reason ?? null,
    p_request_id: request_id ?? null,
    ...(cell !== undefined && { p_cell: cell }),
  });
  return one(201, await withReason(pools));
}

async function change(db1: CallFunction, request: HttpRequest, poolId: string): Promise<HttpResponse> {
  const { add_slots, labels, request_id, reason, ...rules } = readJson(request, POOL_CHANGE_BODY);
  if (labels !== undefined && add_slots !== undefined)
    throw new HttpError('invalid_input', 'Send labels or add_slots: each label adds a slot.');
  const pools = db1<PoolView>('pool_change', {
    p_pool_id: poolId,
    p_rules: rules,
    p_add_slots: labels?.length ?? add_slots ?? 0,
    ...(labels !== undefined && { p_labels: labels }),
    p_actor: operatorOf(request),
    p_reason: reason ?? null,
    p_request_id: request_id ?? null,
  });
  return one(200, await withReason(pools));
}

function one(status: number, [pool]: readonly PoolView[]): HttpResponse {
  if (pool === undefined) throw new HttpError('unknown_pool');
  return jsonResponse(status, pool);
}
