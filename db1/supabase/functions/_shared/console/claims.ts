// Claims as operators look for them, and the way of one from the door to the ledger.

import type { CallFunction } from '../call_function.ts';
import { type ClaimRecord, statusOfRelease } from '../claim.ts';
import { HttpError } from '../errors.ts';
import { operatorOf, REASON, UUID } from '../operator.ts';
import type { Log } from '../ports.ts';
import { checked } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';
import { GIVEN_ID, ID_BEGINNING, LIMIT, PAGE, searchPage } from './list.ts';
import { orderSteps } from './orders.ts';

/** A row of public.claim_timeline, or what the ledger adds. `at` is null where the time was not recorded. */
export interface TimelineEvent {
  readonly at: string | null;
  readonly what: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** A row of public.ticket_of_claim. */
interface Ticket {
  readonly resource_id: string;
  readonly pool_id: string;
  readonly user_id: string;
  readonly confirmed_at: string;
}

export interface ClaimAdminPorts {
  readonly db1: CallFunction;
  readonly db2: CallFunction;
  readonly log: Log;
}

export const CLAIM_QUERY = {
  type: 'object',
  properties: {
    claim_id: ID_BEGINNING,
    user_id: GIVEN_ID,
    request_id: GIVEN_ID,
    pool_id: GIVEN_ID,
    state: {
      type: 'string',
      pattern: '^(held|queued|validated|committed|dead_letter|released|expired|refused|discarded|voided)$',
    },
    after: UUID,
    page: PAGE,
    limit: LIMIT,
  },
  additionalProperties: false,
} as const satisfies Schema;

export const RELEASE_BODY = {
  type: 'object',
  properties: { reason: REASON },
  additionalProperties: false,
} as const satisfies Schema;

export function claimAdminRoutes(ports: ClaimAdminPorts): Route[] {
  const find = async (filters: Record<string, unknown>) =>
    (await ports.db1<ClaimRecord>('claim_search', filters)).map(shown);
  const search = (request: HttpRequest) => searchPage(request, CLAIM_QUERY, find, ({ claim_id }) => claim_id);
  return [
    { method: 'GET', path: '/admin/claims', handle: search },
    { method: 'GET', path: '/admin/claims/:claim', handle: (_, claim) => show(ports, claim) },
    {
      method: 'POST',
      path: '/admin/claims/:claim/release',
      handle: (request, claim) => release(ports, request, claim),
    },
  ];
}

/** The claim and its way through both databases, with what was paid for it. */
export async function claimStory(
  ports: ClaimAdminPorts,
  claimId: string,
): Promise<{ claim: Omit<ClaimRecord, 'secret_matches'>; timeline: TimelineEvent[] }> {
  const [[claim], events, end] = await Promise.all([
    ports.db1<ClaimRecord>('get_claim', { p_claim_id: claimId }),
    ports.db1<TimelineEvent>('claim_timeline', { p_claim_id: claimId }),
    ticketOf(ports, claimId),
  ]);
  if (claim === undefined) throw new HttpError('unknown_claim');
  const order = claim.order ? await orderSteps(ports, claim.order.order_id) : [];
  const timeline = [...events, ...ledgerEvents(claim, end), ...order];
  // The sort is stable: events without a time stay in the intake's order, after those with a time.
  timeline.sort((a, b) => timeOf(a) - timeOf(b));
  return { claim: shown(claim), timeline };
}

async function show(ports: ClaimAdminPorts, id: string): Promise<HttpResponse> {
  return jsonResponse(200, await claimStory(ports, checked(UUID, id, 'The claim id')));
}

/** Operators need no secret: whether one matches is said to buyers only. */
function shown({ secret_matches: _, ...claim }: ClaimRecord): Omit<ClaimRecord, 'secret_matches'> {
  return claim;
}

/** As the owner gives a slot back, for an owner who cannot, and written down. */
async function release({ db1 }: ClaimAdminPorts, request: HttpRequest, id: string): Promise<HttpResponse> {
  const claimId = checked(UUID, id, 'The claim id');
  const { reason } = readJson(request, RELEASE_BODY);
  const [claim] = await db1<ClaimRecord>('release_claim_as_operator', {
    p_claim_id: claimId,
    p_actor: operatorOf(request),
    p_reason: reason ?? null,
  });
  if (claim === undefined) throw new HttpError('unknown_claim');
  return jsonResponse(statusOfRelease(claim), shown(claim));
}

function timeOf({ at }: TimelineEvent): number {
  return at === null ? Number.MAX_SAFE_INTEGER : Date.parse(at);
}

/** Null where the ledger has none, undefined where it cannot be asked: a claim can be looked at during an outage. */
async function ticketOf({ db2, log }: ClaimAdminPorts, claimId: string): Promise<Ticket | null | undefined> {
  try {
    return (await db2<Ticket>('ticket_of_claim', { p_claim_id: claimId }))[0] ?? null;
  } catch (error) {
    log.warn('the ledger cannot be asked for a ticket', { cause: error });
    return undefined;
  }
}

function ledgerEvents(claim: ClaimRecord, ticket: Ticket | null | undefined): TimelineEvent[] {
  if (ticket === undefined) return [{ at: null, what: 'ledger_unreachable', detail: {} }];
  if (ticket !== null) {
    const { confirmed_at, ...detail } = ticket;
    return [{ at: confirmed_at, what: 'committed', detail: { ...detail, ticket: true } }];
  }
  // A pool may commit elsewhere than in our ledger; "sluice reconcile" knows which ones do.
  return claim.state === 'committed' ? [{ at: null, what: 'committed', detail: { ticket: false } }] : [];
}
