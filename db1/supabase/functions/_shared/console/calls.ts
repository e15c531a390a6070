// Call events as operators look for them, newest first.

import type { CallFunction } from '../call_function.ts';
import { HttpError } from '../errors.ts';
import { UUID } from '../operator.ts';
import { checked } from '../query.ts';
import { type HttpResponse, jsonResponse, type Route } from '../router.ts';
import type { Schema } from '../schema.ts';
import { GIVEN_ID, LIMIT, PAGE, searchPage } from './list.ts';

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
  /** Null where it was pruned. */
  readonly payload: Readonly<Record<string, unknown>> | null;
  /** Null where the request was not signed. */
  readonly signature_hash: string | null;
}

export const CALL_QUERY = {
  type: 'object',
  properties: {
    site_id: GIVEN_ID,
    event_id: GIVEN_ID,
    kind: GIVEN_ID,
    after: UUID,
    page: PAGE,
    limit: LIMIT,
  },
  additionalProperties: false,
} as const satisfies Schema;

/** `calls` takes names of functions in schema calls. */
export function callAdminRoutes(calls: CallFunction): Route[] {
  const find = ({ p_after, ...filters }: Record<string, unknown>) =>
    calls<CallRow>('list_calls', { ...filters, p_before: p_after });
  return [
    {
      method: 'GET',
      path: '/admin/calls',
      handle: (request) => searchPage(request, CALL_QUERY, find, ({ id }) => id),
    },
    { method: 'GET', path: '/admin/calls/:id', handle: (_, id) => show(calls, id) },
  ];
}

async function show(calls: CallFunction, id: string): Promise<HttpResponse> {
  const [call] = await calls<CallDetails>('show_call', { p_id: checked(UUID, id, 'The id') });
  if (call === undefined) throw new HttpError('not_found', 'No call has this id.');
  return jsonResponse(200, call);
}
