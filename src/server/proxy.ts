// What a proxy in front changes: which name the browser knows us by, and whether it speaks https. addresses.ts: whose address.

import type { HttpRequest } from '#core/router.ts';

export interface ProxySettings {
  /** How many proxies in front are ours and add to X-Forwarded-For; 0: the header is ignored. */
  readonly trustedProxies: number;
  /** The address that browsers have, where it is known. */
  readonly publicUrl?: URL;
}

/** A page of another site can add neither the header, nor the browser's own word about where the request comes from. */
export function isFromOwnPage({ headers }: HttpRequest, settings: ProxySettings): boolean {
  if (headers['x-sluice-csrf'] !== '1') return false;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  // Older browsers, and plain http.
  const { origin } = headers;
  if (origin === undefined) return true;
  if (typeof origin !== 'string' || !URL.canParse(origin)) return false;
  const { host, origin: whole } = new URL(origin);
  if (settings.publicUrl?.origin === whole) return true;
  const hosts = [headers.host, settings.trustedProxies > 0 ? headers['x-forwarded-host'] : undefined];
  return hosts.includes(host);
}

export function isHttps({ headers }: HttpRequest, { publicUrl }: ProxySettings): boolean {
  return headers['x-forwarded-proto'] === 'https' || publicUrl?.protocol === 'https:';
}
