// Who may read /metrics: the admin key, or a token that opens nothing else, because a scraper keeps its token in a file.

import { createHash, timingSafeEqual } from 'node:crypto';
import { HttpError } from '#core/errors.ts';
import type { HttpRequest } from '#core/router.ts';

export interface ScrapeSettings {
  /** A client that sends it as Bearer may read /metrics. */
  readonly metricsToken?: string;
  /** Any client may, because the network already keeps strangers out. */
  readonly metricsOpen?: boolean;
}

/** Throws a HttpError where the caller may not read the metrics. */
export type ScrapeGuard = (request: HttpRequest) => Promise<unknown>;

/** What a guesser needs ages for. */
const MIN_TOKEN_CHARS = 16;
const BEARER = /^Bearer ([\x21-\x7e]+)$/i;

/** `authorize` is asked about what is not the token; without it the token is the only way in. */
export function scrapeGuard(
  { metricsToken, metricsOpen = false }: ScrapeSettings,
  authorize: ScrapeGuard = () => Promise.reject(new HttpError('auth_required')),
): ScrapeGuard {
  if (metricsOpen) return async () => undefined;
  if (metricsToken === undefined) return authorize;
  const hash = sha256(metricsToken);
  return async (request) => {
    const { authorization } = request.headers;
    const sent = typeof authorization === 'string' ? BEARER.exec(authorization)?.[1] : undefined;
    // Hashed first: equal lengths, so the comparison says nothing about the token's length either.
    if (sent === undefined || !timingSafeEqual(sha256(sent), hash)) await authorize(request);
  };
}

/** The settings, or what is wrong with them. */
export function readScrapeSettings(env: NodeJS.ProcessEnv): ScrapeSettings | string {
  const { SLUICE_METRICS_TOKEN: token, SLUICE_METRICS_OPEN: open } = env;
  if (open && open !== '1') return `SLUICE_METRICS_OPEN is "${open}"; it must be 1, or not set.`;
  if (token && token.length < MIN_TOKEN_CHARS)
    return `SLUICE_METRICS_TOKEN has less than ${MIN_TOKEN_CHARS} characters, which can be guessed.\nhint: make one with: openssl rand -base64 32`;
  return { metricsOpen: open === '1', ...(token && { metricsToken: token }) };
}

/** For the help pages of the commands that have a /metrics. */
export const SCRAPE_VARIABLES = {
  SLUICE_METRICS_TOKEN:
    'lets a scraper read /metrics, and nothing else, as Bearer (docs/observe.md); optional',
  SLUICE_METRICS_OPEN: '1 lets any client read /metrics, for where the network keeps strangers out; optional',
};

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
