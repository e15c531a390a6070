// What admins ask for about one user: all that is known, page by page, and its end. By POST, so that no id stands in an address that
// proxies and logs keep.

import { HttpError } from '../errors.ts';
import { type Authorize, type OperatorRoute, operatorRoutes, REASON } from '../operator.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, readJson } from '../router.ts';
import type { FromSchema, Schema } from '../schema.ts';
import type { UserPorts, UserRequest } from './databases.ts';
import { eraseUser } from './erase.ts';
import { type Found, type Position, readUser } from './export.ts';

const MAX_BODY_BYTES = 4 * 1024;
/** A request is answered long before a proxy gives up; asked again it goes on. */
const BUDGET_MS = 8_000;
/** An answer of a few megabytes at most, unless single rows are large. */
const ROWS_AN_ANSWER = 1_000;

const USER = {
  user_id: { type: 'string', minLength: 1, maxLength: 200 },
  namespace: {
    type: 'string',
    pattern: '^(both|verified|unverified)$',
    description: 'Verified and unverified users of one name are two users; both where left out.',
  },
  reason: REASON,
} as const;

export const ERASE_BODY = {
  type: 'object',
  properties: USER,
  required: ['user_id'],
  additionalProperties: false,
} as const satisfies Schema;

export const EXPORT_BODY = {
  type: 'object',
  properties: {
    ...USER,
    after: {
      type: 'string',
      minLength: 2,
      maxLength: 2_000,
      description: 'What the answer before had as next.',
    },
  },
  required: ['user_id'],
  additionalProperties: false,
} as const satisfies Schema;

export function userRoutes(prefix: string, ports: UserPorts, authorize: Authorize): OperatorRoute[] {
  const requestOf = async (
    request: HttpRequest,
    body: FromSchema<typeof ERASE_BODY>,
  ): Promise<UserRequest> => ({
    userId: body.user_id,
    namespace: (body.namespace ?? 'both') as UserRequest['namespace'],
    actor: await authorize(request),
    reason: body.reason ?? null,
  });
  const exported = async (request: HttpRequest): Promise<HttpResponse> => {
    const { after, ...body } = readJson(request, EXPORT_BODY);
    const from = after === undefined ? undefined : positionOf(after);
    return jsonResponse(200, await readPage(ports, await requestOf(request, body), from));
  };
  const erased = async (request: HttpRequest): Promise<HttpResponse> => {
    const body = readJson(request, ERASE_BODY);
    const erasure = await eraseUser(ports, await requestOf(request, body), BUDGET_MS);
    return jsonResponse(erasure.status === 'working' ? 202 : 200, erasure);
  };
  return operatorRoutes(prefix, MAX_BODY_BYTES, [
    ['POST', '/export', exported],
    ['POST', '/erase', erased],
  ]);
}

async function readPage(
  ports: UserPorts,
  request: UserRequest,
  from: Position | undefined,
): Promise<{ found: Omit<Found, 'next'>[]; next: string | null }> {
  const untilMs = ports.now() + BUDGET_MS;
  const found: Omit<Found, 'next'>[] = [];
  let rows = 0;
  for await (const { next, ...page } of readUser(ports, request, from)) {
    if (page.rows.length > 0) found.push(page);
    rows += page.rows.length;
    if (next !== null && (rows >= ROWS_AN_ANSWER || ports.now() > untilMs))
      return { found, next: JSON.stringify(next) };
  }
  return { found, next: null };
}

function positionOf(text: string): Position {
  const wrong = new HttpError('invalid_input', 'after is not what an answer had as next.');
  try {
    const { database, place, after, moves } = JSON.parse(text);
    if (typeof database !== 'string' || typeof place !== 'string' || typeof after !== 'object') throw wrong;
    if (typeof moves !== 'string') throw wrong;
    return { database, place, after, moves };
  } catch {
    throw wrong;
  }
}
