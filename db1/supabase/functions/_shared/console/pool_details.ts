// What buyers read about a pool, as operators set it.

import type { CallFunction } from '../call_function.ts';
import { HttpError } from '../errors.ts';
import { operatorOf, REASON } from '../operator.ts';
import type { PoolDetails } from '../pool.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';
import { isTimeZone } from '../tickets/words.ts';
import { withReason } from './list.ts';
import { TIME } from './pools.ts';

/** The longest text in the longest characters. */
const MAX_BODY_BYTES = 64 * 1024;

const NAME = { type: ['string', 'null'], minLength: 1, maxLength: 200 } as const satisfies Schema;

export const POOL_DETAILS_BODY = {
  type: 'object',
  properties: {
    title: NAME,
    starts_at: TIME,
    time_zone: {
      type: ['string', 'null'],
      minLength: 1,
      maxLength: 100,
      description: 'A name such as Europe/Berlin, in which starts_at is told; null is UTC.',
    },
    place: NAME,
    picture_url: {
      type: ['string', 'null'],
      maxLength: 2_000,
      pattern: '^https://\\S+$',
      description: 'Browsers get the picture of the drop page from there.',
    },
    text: {
      type: ['string', 'null'],
      minLength: 1,
      maxLength: 10_000,
      description: 'Empty lines part paragraphs.',
    },
    reason: REASON,
  },
  additionalProperties: false,
} as const satisfies Schema;

export function poolDetailsRoutes(db1: CallFunction): Route[] {
  const path = '/admin/pools/:pool/details';
  return [
    { method: 'GET', path, handle: (_, pool) => show(db1, pool) },
    {
      method: 'POST',
      path,
      maxBodyBytes: MAX_BODY_BYTES,
      handle: (request, pool) => change(db1, request, pool),
    },
  ];
}

async function show(db1: CallFunction, poolId: string): Promise<HttpResponse> {
  const [pool] = await db1('pool_list', { p_pool_id: poolId });
  if (pool === undefined) throw new HttpError('unknown_pool');
  const [row] = await db1<{ pool_details: PoolDetails | null }>('pool_details', { p_pool_id: poolId });
  return jsonResponse(200, row?.pool_details ?? NO_DETAILS);
}

async function change(db1: CallFunction, request: HttpRequest, poolId: string): Promise<HttpResponse> {
  const { reason, ...details } = readJson(request, POOL_DETAILS_BODY);
  if (details.time_zone != null && !isTimeZone(details.time_zone))
    throw new HttpError('invalid_input', 'time_zone must be a name such as Europe/Berlin.');
  const [row] = await withReason(
    db1<{ set_pool_details: PoolDetails | null }>('set_pool_details', {
      p_pool_id: poolId,
      p_details: details,
      p_actor: operatorOf(request),
      p_reason: reason ?? null,
    }),
  );
  return jsonResponse(200, row?.set_pool_details ?? NO_DETAILS);
}

const NO_DETAILS: PoolDetails = {
  title: null,
  starts_at: null,
  time_zone: null,
  place: null,
  picture_url: null,
  text: null,
};
