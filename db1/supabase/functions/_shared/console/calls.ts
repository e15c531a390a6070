// Call events as operators look for them, newest first.

import type { CallFunction } from '../call_function.ts';
import { HttpError } from '../errors.ts';
import { UUID } from '../operator.ts';
import { checked, readQuery } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route } from '../router.ts';
import type { Schema } from '../schema.ts';
import { DEFAULT_LIMIT, GIVEN_ID, LIMIT, pageOf } from './list.ts';

/** A row of calls.list_calls. */
export interface CallRow {
  readonly id: string;
  readonly site_id: string;
  readonly event_id: string | null;
  readonly kind: string;
  readonly occurred_at: string;
  readonly received_at: string;
  readonly is_signed: boolean;
}

/** A row of calls.show_call. */
export interface CallDetails extends Omit<CallRow, 'is_signed'> {
  readonly payload: Readonly<Record<string, unknown>>;
  /** Null where the request was not signed. */
  readonly signature_hash: string | null;
}

export const CALL_QUERY = {
  type: 'object',
  properties: { site_id: GIVEN_ID, event_id: GIVEN_ID, kind: GIVEN_ID, after: UUID, limit: LIMIT },
  additionalProperties: false,
} as const satisfies Schema;

/** `calls` takes names of functions in schema calls. */
export function callAdminRoutes(calls: CallFunction): Route[] {
  return [
    { method: 'GET', path: '/admin/calls', handle: (request) => search(calls, request) },
    { method: 'GET', path: '/admin/calls/:id', handle: (_, id) => show(calls, id) },
  ];
}

async function search(calls: CallFunction, request: HttpRequest): Promise<HttpResponse> {
  const query = readQuery(request.query, CALL_QUERY);
  const limit = query.limit ?? DEFAULT_LIMIT;
  const rows = await calls<CallRow>('list_calls', {
    p_site_id: query.site_id ?? null,
    p_event_id: query.event_id ?? null,
    p_kind: query.kind ?? null,
    p_before: query.after ?? null,
    p_limit: limit,
  });
  return pageOf(rows, limit, (call) => call.id);
}

async function show(calls: CallFunction, id: string): Promise<HttpResponse> {
  const [call] = await calls<CallDetails>('show_call', { p_id: checked(UUID, id, 'The id') });
  if (call === undefined) throw new HttpError('not_found', 'There is no call with this id.');
  return jsonResponse(200, call);
}
