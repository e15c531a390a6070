// What the routes of tickets need on Node: the ledger knows the tickets, the intake what they are for.

import type { CallFunction } from '#core/call_function.ts';
import type { Clock, Log } from '#core/ports.ts';
import type { HttpRequest, Route } from '#core/router.ts';
import {
  type SeatDetails,
  type TicketCheck,
  type TicketDetails,
  ticketCheckRoutes,
} from '#core/tickets/tickets.ts';
import type { TicketTokens } from '#core/tickets/token.ts';
import type { Pages } from '../console/assets.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { CallableCell } from '../fleet/one_intake.ts';
import { ticketPageRoute } from './page.ts';

export interface TicketOptions {
  readonly tokens: TicketTokens | undefined;
  readonly fleet: Fleet<CallableCell>;
  /** Functions of schema public of DB2. */
  readonly ledger: CallFunction;
  readonly pages: Promise<Pages>;
  /** Where people find this server; undefined where the operator has not said. */
  publicUrl(): string | undefined;
  isHttps(request: HttpRequest): boolean;
  readonly now: Clock;
  readonly log: Log;
}

/** A path where the server does not know its own address. */
export function ticketLink(token: string, publicUrl: string | undefined): string {
  const path = `/t/${token}`;
  return publicUrl === undefined ? path : new URL(path, publicUrl).href;
}

/** `check` is for operators: the caller puts it behind its role. */
export function ticketRoutes(options: TicketOptions): { readonly page: Route; readonly check: Route[] } {
  const { tokens, fleet, ledger, pages, publicUrl, isHttps, now, log } = options;
  const ports = {
    tokens,
    log,
    checkTicket: async (claimId: string, actor: string) => {
      const [checked] = await ledger<TicketCheck>('check_ticket', { p_claim_id: claimId, p_actor: actor });
      if (checked === undefined) throw new Error('check_ticket gave no row');
      return checked;
    },
    seatDetails: (poolId: string, resourceId: string) =>
      fleet.onPool(
        poolId,
        async ({ call }) =>
          (await call<SeatDetails>('seat_details', { p_pool_id: poolId, p_resource_id: resourceId }))[0],
        (seat) => seat === undefined,
      ),
  };
  return {
    page: ticketPageRoute({
      ...ports,
      ticketDetails: async (claimId) =>
        (await ledger<TicketDetails>('ticket_details', { p_claim_id: claimId }))[0],
      stylesheet: async () => (await pages).ticketStyle,
      // A camera opens a link; a scanner reads either.
      codeOf: (token) => (publicUrl() === undefined ? token : ticketLink(token, publicUrl())),
      isHttps,
      now,
    }),
    check: ticketCheckRoutes(ports),
  };
}
