// Refunds that are owed: what Sluice sends by itself, and what waits for an operator.

import type { CallFunction } from '../call_function.ts';
import { HttpError } from '../errors.ts';
import { operatorOf, REASON } from '../operator.ts';
import { checked } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';
import { GIVEN_ID, LIMIT, PAGE, searchPage } from './list.ts';
import { REFUND_STATES, type RefundRow } from './order_shapes.ts';

/** A row of public.decide_refunds. */
export interface RefundResult {
  readonly id: string;
  readonly outcome: string;
}

export type RefundAct = 'send' | 'skip';

export interface RefundDecision {
  readonly act: RefundAct;
  readonly ids: readonly string[];
  readonly actor: string;
  readonly reason: string | null;
  readonly dryRun: boolean;
}

export interface RefundStore {
  list(args: Record<string, unknown>): Promise<RefundRow[]>;
  find(id: string): Promise<RefundRow | undefined>;
  decide(decision: RefundDecision): Promise<RefundResult[]>;
}

/** One decision is one transaction that holds the lock of each refund. */
const MAX_REFUNDS = 1_000;
const MAX_BODY_BYTES = 256 * 1024;

export const REFUND_QUERY = {
  type: 'object',
  properties: {
    state: { type: 'string', pattern: `^(${REFUND_STATES.join('|')})$` },
    after: GIVEN_ID,
    page: PAGE,
    limit: LIMIT,
  },
  additionalProperties: false,
} as const satisfies Schema;

export const REFUND_BODY = {
  type: 'object',
  properties: {
    ids: { type: 'array', items: GIVEN_ID, minItems: 1, maxItems: MAX_REFUNDS },
    reason: REASON,
    dry_run: { type: 'boolean', description: 'Says what would be done and changes nothing.' },
  },
  required: ['ids'],
  additionalProperties: false,
} as const satisfies Schema;

/** `call` takes names of functions in schema public of DB2. */
export function createRefundStore(call: CallFunction): RefundStore {
  return {
    list: async (args) => (await call<RefundRow & Hidden>('list_refunds', args)).map(shown),
    find: async (id) => (await call<RefundRow & Hidden>('get_refund', { p_id: id })).map(shown)[0],
    decide: ({ act, ids, actor, reason, dryRun }) =>
      call<RefundResult>('decide_refunds', {
        p_ids: ids,
        p_action: act,
        p_actor: actor,
        p_reason: reason,
        p_dry_run: dryRun,
      }),
  };
}

/** Who works on it, and under which key Stripe knows it, is for the refunder alone. */
interface Hidden {
  readonly token: unknown;
  readonly refund_key: unknown;
}

function shown({ token: _, refund_key: __, ...refund }: RefundRow & Hidden): RefundRow {
  return refund;
}

/** The order matters: "send" and "skip" are no ids of refunds. */
export function refundAdminRoutes(store: RefundStore): Route[] {
  const act = (word: RefundAct) => ({
    method: 'POST',
    path: `/admin/refunds/${word}`,
    maxBodyBytes: MAX_BODY_BYTES,
    handle: (request: HttpRequest) => decide(store, word, request),
  });
  return [
    {
      method: 'GET',
      path: '/admin/refunds',
      handle: (request) => searchPage(request, REFUND_QUERY, store.list, ({ id }) => id),
    },
    act('send'),
    act('skip'),
    { method: 'GET', path: '/admin/refunds/:refund', handle: (_, id) => show(store, id) },
  ];
}

async function show(store: RefundStore, id: string): Promise<HttpResponse> {
  const refund = await store.find(checked(GIVEN_ID, id, 'The id'));
  if (refund === undefined) throw new HttpError('not_found', 'No refund has this id.');
  return jsonResponse(200, refund);
}

async function decide(store: RefundStore, act: RefundAct, request: HttpRequest): Promise<HttpResponse> {
  const { ids, reason = null, dry_run: dryRun = false } = readJson(request, REFUND_BODY);
  const results = await store.decide({ act, ids, actor: operatorOf(request), reason, dryRun });
  return jsonResponse(200, { results });
}
