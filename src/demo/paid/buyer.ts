// One buyer: claims seats, goes to the checkout, and pays, or does not.

import { setTimeout as delay } from 'node:timers/promises';
import { type OwnClaim, type SluiceClient, SluiceError } from '#client/index.ts';
import { StackError } from '../../failure.ts';
import type { StandInClient } from '../../stripe_stand_in/client.ts';
import type { PlannedBuyer } from './plan.ts';
import type { Seller } from './seller.ts';

/** What became of a buyer's order, as the buyer sees it. */
export type End = 'paid' | 'expired' | 'released' | 'refund_due' | 'refunded' | 'voided' | 'no_seats';

export interface ServedBuyer extends PlannedBuyer {
  readonly end: End;
  readonly claim?: OwnClaim;
}

export interface Market {
  readonly pool: string;
  readonly client: SluiceClient;
  readonly standIn: StandInClient;
  readonly seller: Seller;
  readonly signal: AbortSignal;
  /** How long seats are held: a buyer who found none comes back for the seats that were not paid for. */
  readonly holdSec: number;
  /** Called when something becomes known, for the progress. */
  readonly onStep: (step: 'answered' | 'paid' | 'over') => void;
  /** Told the link of a ticket that is about to be refunded. */
  readonly onTakingBack: (ticketUrl: string) => void;
}

const LOOK_EVERY_MS = 500;
/** Seats whose hold is over are on sale again within this. */
const COMING_BACK_MS = 8_000;
/** A hold is a minute; all that follows takes seconds. */
const PATIENCE_MS = 180_000;
/** Of these a buyer's order can still become something else. */
const OPEN: ReadonlySet<string> = new Set(['held', 'paying']);

export async function serve(market: Market, buyer: PlannedBuyer): Promise<ServedBuyer> {
  const claim = await claimSeats(market, buyer);
  market.onStep('answered');
  if (claim === undefined) {
    market.onStep('over');
    return { ...buyer, end: 'no_seats' };
  }
  const end = await WAYS[buyer.way](market, claim, await openCheckout(market, claim));
  market.onStep('over');
  return { ...buyer, end, claim };
}

type Play = (market: Market, claim: OwnClaim, session: string) => Promise<End>;

const WAYS: Readonly<Record<PlannedBuyer['way'], Play>> = {
  async pays(market, claim, session) {
    await market.standIn.pay(session);
    market.onStep('paid');
    return untilEnded(market, claim);
  },
  leaves: (market, claim) => untilEnded(market, claim),
  async late(market, claim, session) {
    // The bank takes longer than the hold.
    await market.standIn.pay(session, 'delayed');
    const end = await untilEnded(market, claim);
    if (end !== 'expired') return end;
    await market.standIn.endDelayed(session, true);
    market.onStep('paid');
    return untilEnded(market, claim, 'expired');
  },
  async twice(market, claim, session) {
    const end = await WAYS.pays(market, claim, session);
    await market.standIn.pay(await market.seller.linkLike(session));
    return end;
  },
  async refunded(market, claim, session) {
    const end = await WAYS.pays(market, claim, session);
    if (end !== 'paid') return end;
    const ticketUrl = await untilTicket(market, claim);
    if (ticketUrl !== undefined) market.onTakingBack(ticketUrl);
    await market.seller.refund(session);
    return untilEnded(market, claim, 'paid');
  },
};

/** Undefined where too few seats are free. A buyer who means to pay asks again while seats may come back. */
async function claimSeats(market: Market, buyer: PlannedBuyer): Promise<OwnClaim | undefined> {
  const { client, pool, signal, holdSec } = market;
  const order = { pool, userId: `demo-buyer-${buyer.number}`, quantity: buyer.seats };
  const until = Date.now() + (buyer.way === 'pays' ? holdSec * 1_000 + COMING_BACK_MS : 0);
  for (;;) {
    try {
      return await client.claim(order, { signal });
    } catch (error) {
      const isOut = error instanceof SluiceError && ['sold_out', 'not_enough'].includes(error.code);
      if (!isOut) throw error;
      if (Date.now() > until) return undefined;
    }
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** The id of the session that the buyer is sent to. */
async function openCheckout({ client, signal }: Market, claim: OwnClaim): Promise<string> {
  const { url } = await client.checkout(claim, { signal });
  return url.split('/').at(-1) ?? '';
}

/** Until the order is past holding and paying, and past `before`. */
async function untilEnded({ client, signal }: Market, claim: OwnClaim, before?: End): Promise<End> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const { order } = await client.getClaim(claim, { signal });
    const status = order?.status ?? 'held';
    if (!OPEN.has(status) && status !== before) return status as End;
    if (Date.now() > until) throw new StackError(`an order is ${status} for minutes`, 'does a worker run?');
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** The link of the order's first ticket; undefined where tickets have no links. */
async function untilTicket({ client, signal }: Market, claim: OwnClaim): Promise<string | undefined> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const { order } = await client.getClaim(claim, { signal });
    const ticket = order?.claims?.find(({ state }) => state === 'committed');
    if (ticket !== undefined) return ticket.ticket_url;
    if (Date.now() > until)
      throw new StackError('a paid order has no ticket for minutes', 'does a worker run?');
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}
