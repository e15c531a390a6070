import { SourceError } from './ask.ts';
import type { AskingEndpoint, Source } from './source.ts';
import { stripe } from './stripe.ts';
import { twilio } from './twilio.ts';

const SOURCES: Readonly<Record<string, Source>> = { stripe, twilio };

export const SOURCE_PROVIDERS: readonly string[] = Object.keys(SOURCES);

/**
 * The name of the endpoint's key. The usual name is for the provider's own tenant alone: the key of one account must not bring
 * its events to the tenant of another.
 */
export function keyNameOf({ api_key_name, tenant, provider }: AskingEndpoint): string | undefined {
  return api_key_name ?? (tenant === provider ? sourceOf(provider)?.keyName : undefined);
}

/** Undefined for a provider that cannot be asked what it sent. */
export function sourceOf(provider: string): Source | undefined {
  return Object.hasOwn(SOURCES, provider) ? SOURCES[provider] : undefined;
}

/** The addresses of the providers' APIs, by the variables that move them. */
export type ApiUrls = Readonly<Record<string, string | undefined>>;

const LOOPBACK = /^(127(\.\d{1,3}){3}|\[::1\]|localhost)$/;

/** A key goes nowhere in clear text but to this very machine. */
export function apiUrl({ urlVariable, url }: Source, urls: ApiUrls): string {
  const given = urls[urlVariable] || url;
  const parsed = URL.canParse(given) ? new URL(given) : undefined;
  const isSafe =
    parsed?.protocol === 'https:' || (parsed?.protocol === 'http:' && LOOPBACK.test(parsed.hostname));
  if (isSafe) return given;
  throw new SourceError(
    `${urlVariable} is not an https address`,
    'http is for 127.0.0.1, [::1] and localhost only: the key would be readable on its way',
  );
}
