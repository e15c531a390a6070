// Tickets as people hold them: a link for each, and the scanner's question at the entrance.

import { inTime } from '../deadline.ts';
import { HttpError } from '../errors.ts';
import { operatorOf } from '../operator.ts';
import type { Log } from '../ports.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';
import type { TicketTokens } from './token.ts';
import { seatName } from './words.ts';

/** A row of public.ticket_details. */
export interface TicketDetails {
  readonly pool_id: string;
  readonly resource_id: string;
  readonly user_id: string;
  readonly order_id: string | null;
  readonly confirmed_at: string;
  readonly voided_at: string | null;
  readonly cause: string | null;
  readonly used_at: string | null;
}

/** A row of public.check_ticket. All but the outcome is null where the ticket is unknown. */
export interface TicketCheck {
  readonly outcome: 'valid' | 'used' | 'voided' | 'unknown';
  readonly used_at: string | null;
  readonly used_by: string | null;
  readonly pool_id: string | null;
  readonly resource_id: string | null;
}

/** What a ticket is for: a row of public.seat_details. */
export interface SeatDetails {
  readonly title: string | null;
  readonly starts_at: string | null;
  /** An IANA name, in which starts_at is told; UTC where it is null. */
  readonly time_zone: string | null;
  readonly place: string | null;
  readonly label: string | null;
}

export interface TicketPorts {
  /** Left out where the server has no secret for tickets: then they have no links. */
  readonly tokens?: TicketTokens | undefined;
  /** Marks a valid ticket as used, by this operator. */
  checkTicket(claimId: string, actor: string): Promise<TicketCheck>;
  seatDetails(poolId: string, resourceId: string): Promise<SeatDetails | undefined>;
  readonly log: Log;
}

export const CHECK_BODY = {
  type: 'object',
  properties: {
    token: {
      type: 'string',
      minLength: 1,
      maxLength: 500,
      description: "What the ticket's QR code holds: its link, or the token at the end of the link.",
    },
  },
  required: ['token'],
  additionalProperties: false,
} as const satisfies Schema;

/** At an entrance people wait: after so long the answer comes without the name of the seat. */
const SEAT_MS = 1_000;

const UNKNOWN: TicketCheck = {
  outcome: 'unknown',
  used_at: null,
  used_by: null,
  pool_id: null,
  resource_id: null,
};

/** Behind the role that ADMIN_ROLES has for it. */
export function ticketCheckRoutes(ports: TicketPorts): Route[] {
  return [{ method: 'POST', path: '/v1/tickets/check', handle: (request) => check(ports, request) }];
}

async function check(ports: TicketPorts, request: HttpRequest): Promise<HttpResponse> {
  const { token } = readJson(request, CHECK_BODY);
  if (ports.tokens === undefined) throw new HttpError('no_ticket_links');
  const claimId = await ports.tokens.claimOf(token.slice(token.lastIndexOf('/') + 1));
  const checked = claimId === undefined ? UNKNOWN : await ports.checkTicket(claimId, operatorOf(request));
  const { outcome, used_at, used_by, pool_id, resource_id } = checked;
  const seat =
    pool_id === null || resource_id === null ? undefined : await seatOf(ports, pool_id, resource_id);
  return jsonResponse(200, {
    outcome,
    used_at,
    used_by,
    pool_id,
    resource_id,
    title: seat?.title ?? null,
    seat: resource_id === null ? null : seatName(seat?.label, resource_id),
  });
}

/** A ticket is good or not whatever its seat is called: while the intake is away, it is told without. */
export async function seatOf(
  { seatDetails, log }: Pick<TicketPorts, 'seatDetails' | 'log'>,
  poolId: string,
  resourceId: string,
): Promise<SeatDetails | undefined> {
  try {
    return await inTime(SEAT_MS, seatDetails(poolId, resourceId), () => new Error('no answer in time'));
  } catch (error) {
    log.warn('a ticket is shown without its seat', { pool_id: poolId, cause: error });
    return undefined;
  }
}
