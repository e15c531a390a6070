// The page at a session's `url`. It needs no script: a form with one button pays, and leads back to the seller.

import type Stripe from 'stripe';
import type { ApiAnswer, ApiRequest } from './api_server.ts';
import type { StoredSession } from './books.ts';
import { Refusal } from './refusal.ts';
import type { Sessions } from './sessions.ts';

export const PAY_PAGE = '/c/pay';

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  'referrer-policy': 'no-referrer',
};
const STYLE =
  'body{font:1.1rem/1.5 system-ui,sans-serif;max-width:26rem;margin:12vh auto;padding:0 1rem}' +
  'button{font:inherit;width:100%;padding:.8rem;border:0;border-radius:.4rem;background:#5851df;color:#fff;cursor:pointer}' +
  'small{color:#595959}';
const ENDED: Record<string, string> = {
  expired: 'This checkout session has expired. You have not been charged.',
  complete: 'This checkout session has been paid already.',
};

export function payPage({ method, url }: ApiRequest, sessions: Sessions): ApiAnswer {
  const id = url.pathname.slice(PAY_PAGE.length + 1);
  try {
    const stored = sessions.find(id);
    if (method !== 'POST') return show(stored);
    const { success_url: back } = sessions.pay(id);
    return redirect((back ?? '/').replaceAll('{CHECKOUT_SESSION_ID}', id));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const isKnown = error.answer.status !== 404;
    return html(
      isKnown ? 409 : 404,
      'Checkout',
      `<p>${isKnown ? textOf(sessions.find(id)) : 'This session does not exist.'}</p>`,
    );
  }
}

function show({ session, title }: StoredSession): ApiAnswer {
  const back =
    session.cancel_url === null
      ? ''
      : `<p><a href="${escaped(session.cancel_url)}">Back to the seller</a></p>`;
  if (session.status !== 'open') return html(200, 'Checkout', `<p>${textOf({ session })}</p>${back}`);
  return html(
    200,
    title,
    `<p>${escaped(title)}</p>
<form method="post"><button type="submit">Pay ${escaped(priceOf(session))}</button></form>
${back}<p><small>A stand-in for Stripe: no card, and no money.</small></p>`,
  );
}

function textOf({ session: { status } }: Pick<StoredSession, 'session'>): string {
  return ENDED[status ?? ''] ?? 'This checkout session cannot be paid.';
}

function priceOf({ amount_total: amount, currency }: Stripe.Checkout.Session): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency: currency ?? 'eur' });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format((amount ?? 0) / 10 ** digits);
}

function html(status: number, title: string, body: string): ApiAnswer {
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title><style>${STYLE}</style><main><h1>Pay</h1>${body}</main></html>`;
  return { status, body: page, headers: HEADERS };
}

function redirect(to: string): ApiAnswer {
  return { status: 303, body: '', headers: { ...HEADERS, location: to } };
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
