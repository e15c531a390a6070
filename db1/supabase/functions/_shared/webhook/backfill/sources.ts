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
