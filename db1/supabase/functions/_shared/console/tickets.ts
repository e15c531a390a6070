// Tickets as operators look for them, and one with the way of its claim.

import { HttpError } from '../errors.ts';
import { isUnavailable, toHttpError } from '../failure.ts';
import { UUID } from '../operator.ts';
import { checked } from '../query.ts';
import { type HttpResponse, jsonResponse, type Route } from '../router.ts';
import type { Schema } from '../schema.ts';
import { type ClaimAdminPorts, claimStory, type TimelineEvent } from './claims.ts';
import { GIVEN_ID, ID_BEGINNING, LIMIT, PAGE, searchPage } from './list.ts';
import { inOrder } from './order_timeline.ts';

/** A row of public.ticket_list. */
export interface TicketRow {
  /** A ticket is called by its claim. */
  readonly claim_id: string;
  readonly resource_id: string;
  readonly pool_id: string;
  readonly user_id: string;
  readonly verified: boolean;
  readonly order_id: string | null;
  readonly state: 'valid' | 'used' | 'void';
  readonly confirmed_at: string;
  readonly used_at: string | null;
  readonly used_by: string | null;
  readonly voided_at: string | null;
  readonly cause: string | null;
}

export interface TicketView {
  readonly ticket: TicketRow;
  /** False while its cell does not answer, or does not know its claim: the way of the claim is not told then. */
  readonly is_claim_known: boolean;
  readonly timeline: readonly TimelineEvent[];
}

export const TICKET_QUERY = {
  type: 'object',
  properties: {
    claim_id: ID_BEGINNING,
    pool_id: GIVEN_ID,
    user_id: GIVEN_ID,
    order_id: ID_BEGINNING,
    state: { type: 'string', pattern: '^(valid|void)$', description: 'valid: also one that was used.' },
    after: UUID,
    page: PAGE,
    limit: LIMIT,
  },
  additionalProperties: false,
} as const satisfies Schema;

export function ticketAdminRoutes(ports: ClaimAdminPorts): Route[] {
  const find = (args: Record<string, unknown>) => ports.db2<TicketRow>('ticket_list', args);
  return [
    {
      method: 'GET',
      path: '/admin/tickets',
      handle: (request) => searchPage(request, TICKET_QUERY, find, ({ claim_id }) => claim_id),
    },
    { method: 'GET', path: '/admin/tickets/:ticket', handle: (_, id) => show(ports, id) },
  ];
}

async function show(ports: ClaimAdminPorts, id: string): Promise<HttpResponse> {
  const claimId = checked(UUID, id, 'The claim id');
  const [ticket] = await ports.db2<TicketRow>('ticket_list', { p_claim_id: claimId, p_limit: 1 });
  if (ticket === undefined) throw new HttpError('not_found', 'This claim has no ticket.');
  const way = await wayOf(ports, claimId);
  const known = new Set(way?.map(({ what }) => what));
  const own = ownSteps(ticket).filter(({ what }) => !known.has(what));
  return jsonResponse(200, {
    ticket,
    is_claim_known: way !== undefined,
    timeline: inOrder([...(way ?? []), ...own]),
  } satisfies TicketView);
}

/** Undefined where the intake cannot be asked, or a ticket was written by hand and has no claim. */
async function wayOf(ports: ClaimAdminPorts, claimId: string): Promise<TimelineEvent[] | undefined> {
  try {
    return (await claimStory(ports, claimId)).timeline;
  } catch (error) {
    const { code } = toHttpError(error).kind;
    if (!isUnavailable(error) && code !== 'cell_unavailable' && code !== 'unknown_claim') throw error;
    return undefined;
  }
}

function ownSteps({ confirmed_at, used_at, used_by, voided_at, cause }: TicketRow): TimelineEvent[] {
  return [
    { at: confirmed_at, what: 'committed', detail: { ticket: true } },
    ...(used_at === null ? [] : [{ at: used_at, what: 'used', detail: { actor: used_by } }]),
    ...(voided_at === null ? [] : [{ at: voided_at, what: 'ticket_voided', detail: { cause } }]),
  ];
}
