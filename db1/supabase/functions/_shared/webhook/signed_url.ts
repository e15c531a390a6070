// The address that a provider signed. Only Twilio signs it, and we compare with our own configured address: the Host header is
// the sender's word, and with it a request that Twilio signed for another company's address would pass as one to us.

import { HttpError } from '../errors.ts';
import type { HttpRequest } from '../router.ts';
import type { Endpoint } from './ports.ts';
import type { Provider } from './provider.ts';

/** The adapters of both runtimes pass the query along with the request. */
export type WebhookRequest = HttpRequest & { readonly query?: string };

/** This very machine: tests, and `sluice webhooks send` against `npm start`. No provider signs such an address. */
const LOOPBACK = /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/;

/** The endpoint's public_url; without one, and on this machine, the address as it was asked for. */
export function signedUrl(
  { headers: { host }, path, query = '' }: WebhookRequest,
  { public_url: publicUrl }: Endpoint,
  { signsUrl = false }: Provider,
): string {
  if (publicUrl !== null) return withQuery(publicUrl, query);
  const isHere = typeof host === 'string' && LOOPBACK.test(host);
  if (signsUrl && !isHere)
    throw new HttpError(
      'bad_signature',
      'no_public_url: the provider signs the address; set it as public_url of the endpoint.',
    );
  return `http://${host}${path}${query === '' ? '' : `?${query}`}`;
}

/** With what the request's query has beyond the address's own: Twilio adds the hash of a JSON body. */
function withQuery(url: string, query: string): string {
  if (query === '') return url;
  const at = url.indexOf('?');
  if (at < 0) return `${url}?${query}`;
  // A pair has several spellings (`'` and `%27`), and the one on the way here need not be the one that is set.
  const known = new Set(
    url
      .slice(at + 1)
      .split('&')
      .map(canonical),
  );
  const added = query.split('&').filter((pair) => !known.has(canonical(pair)));
  return [url, ...added].join('&');
}

function canonical(pair: string): string {
  return new URLSearchParams(pair).toString();
}
