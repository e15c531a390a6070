// How Stripe says no (docs.stripe.com/api/errors, docs.stripe.com/error-codes), and its lists (docs.stripe.com/api/pagination).

import type Stripe from 'stripe';
import type { ApiAnswer } from './api_server.ts';

type ErrorFields = { type?: string; code?: string; param?: string };

/** A refusal. `isSaved`: the request was under way when it failed, so that its idempotency key repeats the answer. */
export class Refusal extends Error {
  readonly answer: ApiAnswer;
  readonly isSaved: boolean;

  constructor(status: number, message: string, fields: ErrorFields = {}, isSaved = false) {
    super(message);
    this.answer = { status, body: { error: { message, type: 'invalid_request_error', ...fields } } };
    this.isSaved = isSaved;
  }
}

export function missing(what: string, id: string, param = 'id'): Refusal {
  return new Refusal(404, `No such ${what}: '${id}'`, { code: 'resource_missing', param });
}

/** docs.stripe.com/rate-limits */
export const RATE_LIMITED: ApiAnswer = {
  status: 429,
  headers: { 'stripe-rate-limited-reason': 'global-rate', 'retry-after': '0' },
  body: {
    error: {
      message:
        'Request rate limit exceeded. Learn more about rate limits here https://stripe.com/docs/rate-limits.',
      type: 'invalid_request_error',
      code: 'rate_limit',
    },
  },
};

export const SERVER_ERROR: ApiAnswer = {
  status: 500,
  body: { error: { message: 'An unknown error occurred', type: 'api_error' } },
};

/** docs.stripe.com/error-codes#idempotency-key-in-use */
export const KEY_IN_USE: ApiAnswer = {
  status: 409,
  body: {
    error: {
      message:
        'There is currently another in-progress request using this Idempotent Key. Please try again later.',
      type: 'idempotency_error',
      code: 'idempotency_key_in_use',
    },
  },
};

export type Listed = { id: string; created: number };

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 10;
const PAGING = [
  'limit',
  'starting_after',
  'ending_before',
  'expand[]',
  'created',
  'created[gte]',
  'created[lt]',
];
const MORE_PAGING = ['created[gt]', 'created[lte]'];

/** Newest first. `filters` are the parameters that this list takes beside those of every list. */
export function page(
  url: URL,
  objects: readonly Listed[],
  what: string,
  filters: readonly string[] = [],
): ApiAnswer {
  const query = url.searchParams;
  const known = [...PAGING, ...MORE_PAGING, ...filters];
  const odd = [...query.keys()].find((name) => !known.includes(name));
  if (odd !== undefined)
    throw new Refusal(400, `Received unknown parameter: ${odd}`, { code: 'parameter_unknown', param: odd });
  const limit = Number(query.get('limit') ?? LIMIT_DEFAULT);
  if (!(limit >= 1 && limit <= LIMIT_MAX))
    throw new Refusal(400, `This value must be less than or equal to ${LIMIT_MAX}.`, { param: 'limit' });
  const bound = (name: string, otherwise: number) => Number(query.get(`created[${name}]`) ?? otherwise);
  const matching = objects
    .map((object, at) => ({ object, at }))
    .sort((a, b) => b.object.created - a.object.created || b.at - a.at)
    .map(({ object }) => object)
    .filter(({ created }) => created >= bound('gte', 0) && created > bound('gt', -1))
    .filter(({ created }) => created < bound('lt', Infinity) && created <= bound('lte', Infinity));
  const after = query.get('starting_after');
  const at = after === null ? 0 : matching.findIndex(({ id }) => id === after) + 1;
  if (after !== null && at === 0) throw missing(what, after, 'starting_after');
  const body: Stripe.ApiList<Listed> = {
    object: 'list',
    data: matching.slice(at, at + limit),
    has_more: at + limit < matching.length,
    url: url.pathname,
  };
  return { status: 200, body };
}
