// `GET /t/:token`: one ticket as a page. No script: it opens in any browser, is printed, and can be saved.

import { renderSVG } from 'uqr';
import { AnswerCache } from '#core/answer_cache.ts';
import { toHttpError } from '#core/failure.ts';
import type { Clock } from '#core/ports.ts';
import type { HttpRequest, HttpResponse, Route } from '#core/router.ts';
import { type SeatDetails, seatOf, type TicketDetails, type TicketPorts } from '#core/tickets/tickets.ts';
import { momentAt, seatName } from '#core/tickets/words.ts';
import { hueOf, nameOf } from '../../console/drop/text.ts';
import { HSTS, SECURITY } from '../console/assets.ts';
import { escaped, htmlOf } from '../console/html.ts';

export interface TicketPagePorts extends Pick<TicketPorts, 'tokens' | 'seatDetails' | 'log'> {
  /** Undefined where the claim never was a ticket. */
  ticketDetails(claimId: string): Promise<TicketDetails | undefined>;
  /** The address of the style, as files of the pages have it. */
  stylesheet(): Promise<string>;
  /** What the code says. */
  codeOf(token: string): string;
  isHttps(request: HttpRequest): boolean;
  readonly now: Clock;
}

interface Ticket extends TicketDetails {
  readonly seat: SeatDetails | undefined;
}

type State = 'valid' | 'used' | 'voided';
const STATES: Readonly<Record<State, string>> = { valid: 'Valid', used: 'Used', voided: 'Voided' };
/** Colours are classes: the policy of the pages allows no style in the HTML. */
const HUE_STEP = 30;
/** White around the code, in its squares, as the standard asks for. */
const QUIET_SQUARES = 4;
const QR = { ecc: 'M', border: QUIET_SQUARES, pixelSize: 1 } as const;

export function ticketPageRoute(ports: TicketPagePorts): Route {
  // A reload costs the databases nothing for a second.
  const tickets = new AnswerCache((claimId) => look(ports, claimId), ports.now);
  return {
    method: 'GET',
    path: '/t/:token',
    async handle(request, token) {
      const answer = await answerTo(token);
      return ports.isHttps(request) ? { ...answer, headers: { ...answer.headers, ...HSTS } } : answer;
    },
  };

  async function answerTo(token: string): Promise<HttpResponse> {
    const style = `<link rel="stylesheet" href="${await ports.stylesheet()}" />`;
    if (ports.tokens === undefined) return page(404, style, 'No ticket', NO_LINKS);
    const claimId = await ports.tokens.claimOf(token);
    if (claimId === undefined) return page(404, style, 'No ticket', UNKNOWN);
    let ticket: Ticket | undefined;
    try {
      ticket = await tickets.get(claimId);
    } catch (error) {
      if (!toHttpError(error).kind.retryable) throw error;
      ports.log.warn('a ticket cannot be shown', { claim_id: claimId, cause: error });
      return page(503, style, 'Ticket', LATER);
    }
    if (ticket === undefined) return page(404, style, 'No ticket', UNKNOWN);
    const title = ticket.seat?.title ?? nameOf(ticket.pool_id);
    const html = ticketHtml(ticket, claimId, title, ports.codeOf(token));
    return page(200, style, `Ticket · ${title}`, html);
  }
}

async function look(ports: TicketPagePorts, claimId: string): Promise<Ticket | undefined> {
  const details = await ports.ticketDetails(claimId);
  if (details === undefined) return undefined;
  return { ...details, seat: await seatOf(ports, details.pool_id, details.resource_id) };
}

const NO_LINKS = words('Tickets have no links here', 'The organiser has not switched them on.');
const LATER = words(
  'Your ticket cannot be shown right now',
  'It is kept, and nothing is lost. Open this page again in a moment.',
);
const UNKNOWN = words(
  'This ticket does not exist',
  'Was the link copied whole? The organiser finds your seat by the claim id that you got when you bought it.',
);

function words(title: string, text: string): readonly string[] {
  return ['<main class="words">', `<h1>${title}</h1>`, `<p>${text}</p>`, '</main>'];
}

function stateOf({ voided_at, used_at }: TicketDetails): State {
  if (voided_at !== null) return 'voided';
  return used_at === null ? 'valid' : 'used';
}

function ticketHtml(ticket: Ticket, claimId: string, title: string, code: string): readonly string[] {
  const { seat, pool_id, resource_id } = ticket;
  const state = stateOf(ticket);
  const hue = Math.floor(hueOf(pool_id) / HUE_STEP) * HUE_STEP;
  return [
    `<main class="hue-${hue}" data-state="${state}">`,
    `<article class="ticket" aria-label="Ticket for ${escaped(title)}">`,
    '<header>',
    `<p class="state">${STATES[state]}</p>`,
    `<h1>${escaped(title)}</h1>`,
    '</header>',
    '<dl class="facts">',
    ...(seat?.starts_at == null ? [] : [fact('When', momentAt(seat.starts_at, seat.time_zone))]),
    ...(seat?.place == null ? [] : [fact('Where', seat.place)]),
    fact('Seat', seatName(seat?.label, resource_id), 'seat'),
    '</dl>',
    // A code that admits no person is not shown: it would only be scanned.
    ...(state === 'voided'
      ? []
      : [`<div class="qr" role="img" aria-label="The ticket's code">${renderSVG(code, QR)}</div>`]),
    `<p class="note">${noteOf(ticket, state)}</p>`,
    '<dl class="ids">',
    fact('Ticket', claimId, 'code'),
    '</dl>',
    '</article>',
    '</main>',
  ];
}

function fact(name: string, value: string, className = ''): string {
  const marked = className === '' ? '' : ` class="${className}"`;
  return `<div><dt>${name}</dt><dd${marked}>${escaped(value)}</dd></div>`;
}

function noteOf({ seat, used_at, voided_at }: Ticket, state: State): string {
  const zone = seat?.time_zone;
  if (state === 'voided' && voided_at !== null)
    return `Taken back on ${momentAt(voided_at, zone)}. It is not valid any more.`;
  if (state === 'used' && used_at !== null)
    return `Checked in on ${momentAt(used_at, zone)}. It is not valid a second time.`;
  return 'Show this code at the entrance. It admits one person, once: keep the link to yourself.';
}

function page(status: number, style: string, title: string, body: readonly string[]): HttpResponse {
  return {
    status,
    headers: {
      ...SECURITY,
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      ...(status === 503 && { 'retry-after': '1' }),
    },
    body: htmlOf({
      title: escaped(title),
      head: ['<meta name="robots" content="noindex" />', style],
      body,
    }),
  };
}
