// How a test, the demo or chaos moves a stand-in that runs in another process: its switches, its books, and what buyers and banks
// do. With the API key as bearer, and never down.

import type { ApiAnswer, ApiRequest } from './api_server.ts';
import type { Books, Kind } from './books.ts';
import { missing } from './refusal.ts';
import type { StripeStandIn } from './stand_in.ts';

export const CONTROL = '/stand_in';

/** Those of a kind whose fields are as the other parameters say: books that have run for long are large. */
function wantedOf(books: Books, params: URLSearchParams): object[] {
  const { kind = 'session', ...wanted } = Object.fromEntries(params);
  const { id } = wanted;
  const found = id === undefined ? books.list(kind as Kind) : [books.find(kind as Kind, id)];
  return found.flatMap((one) => {
    const fields = (one ?? {}) as Record<string, unknown>;
    const isWanted = Object.entries(wanted).every(([name, value]) => String(fields[name]) === value);
    return one !== undefined && isWanted ? [one] : [];
  });
}

/** Undefined where the path is not one of these. */
export function controlRoutes(
  { method, url, body }: ApiRequest,
  { switches, books, sessions, money, events }: StripeStandIn,
): ApiAnswer | undefined {
  const { pathname, searchParams } = url;
  if (!pathname.startsWith(`${CONTROL}/`)) return undefined;
  const given = body === '' ? {} : JSON.parse(body);
  const ways: Record<string, () => unknown> = {
    'GET /switches': () => switches.settings,
    'POST /switches': () => switches.set(given),
    'POST /deliver_to': () => events.deliverTo(given),
    'GET /books': () => wantedOf(books, searchParams),
    'POST /pay': () => sessions.pay(given.session, given.with),
    'POST /end_delayed': () => sessions.endDelayed(given.session, given.paid === true),
    'POST /lose_dispute': () => money.loseDispute(given.payment_intent),
    'POST /fail_refund': () => money.failRefund(given.refund),
  };
  const way = ways[`${method} ${pathname.slice(CONTROL.length)}`];
  if (way === undefined) throw missing('path of the stand-in', pathname);
  return { status: 200, body: way() };
}
