// What the console's lists have in common: a page of items, and where the next one begins.

import { HttpError } from '../errors.ts';
import { toHttpError } from '../failure.ts';
import { readQuery } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse } from '../router.ts';
import type { ObjectSchema, Schema } from '../schema.ts';
import { textOf } from '../text.ts';

export interface Page<Item> {
  readonly items: readonly Item[];
  /** What to send as `after` for the next page; null where this is the last. */
  readonly next: string | null;
}

export const DEFAULT_LIMIT = 100;
export const LIMIT = { type: 'integer', minimum: 1, maximum: 1_000 } as const satisfies Schema;
export const PAGE = {
  type: 'integer',
  minimum: 1,
  maximum: 10_000,
  description: 'The page of this number, where `after` is left out: `limit` rows each, the first is 1.',
} as const satisfies Schema;
export const ID_BEGINNING = {
  type: 'string',
  pattern: '^[0-9a-fA-F-]{4,36}$',
  description: 'A whole id, or its beginning: four digits or more.',
} as const satisfies Schema;
export const GIVEN_ID = { type: 'string', minLength: 1, maxLength: 200 } as const satisfies Schema;

/** A page that is not full is the last one. */
export function pageOf<Item>(
  items: readonly Item[],
  limit: number,
  keyOf: (last: Item) => string,
): HttpResponse {
  const last = items.at(-1);
  const next = last !== undefined && items.length === limit ? keyOf(last) : null;
  return jsonResponse(200, { items, next } satisfies Page<Item>);
}

/**
 * A list that operators filter. `find` is called with the arguments of its SQL function: each filter `x` is `p_x`, null where
 * the request leaves it out.
 */
export async function searchPage<Item>(
  request: HttpRequest,
  schema: ObjectSchema,
  find: (args: Record<string, unknown>) => Promise<readonly Item[]>,
  keyOf: (last: Item) => string,
): Promise<HttpResponse> {
  const query: Readonly<Record<string, unknown>> = readQuery(request.query, schema);
  const limit = Number(query.limit ?? DEFAULT_LIMIT);
  const { page: _, ...names } = schema.properties;
  const filters = Object.keys(names).map((name) => [`p_${name}`, query[name] ?? null]);
  const p_offset = offsetOf({ ...query, limit });
  return pageOf(await find({ ...Object.fromEntries(filters), p_limit: limit, p_offset }), limit, keyOf);
}

/** How many rows come before the page that is asked for by its number: `after` says it better, where it is given. */
export function offsetOf({ page, after, limit }: { page?: unknown; after?: unknown; limit: number }): number {
  return page === undefined || after !== undefined ? 0 : (Number(page) - 1) * limit;
}

/** What our own SQL refuses as invalid it says in words that are for operators. */
export async function withReason<Result>(asked: Promise<Result>): Promise<Result> {
  try {
    return await asked;
  } catch (error) {
    if (toHttpError(error).kind.code === 'invalid_input')
      throw new HttpError('invalid_input', textOf(error), error);
    throw error;
  }
}
