// Stripe on Node: its own package, with the key of a tenant, at the address that STRIPE_API_URL names.

import type { CallFunction } from '#core/call_function.ts';
import { createPaymentsOf } from '#core/orders/keys.ts';
import type { PaymentsOf } from '#core/orders/ports.ts';
import { type StripeClient, stripeOptions } from '#core/orders/stripe.ts';
import type { Log } from '#core/ports.ts';
import type { ApiUrls } from '#core/webhook/backfill/sources.ts';
import type { SecretSource } from '#core/webhook/secrets.ts';

/** Throws where the address is not one that a key may be sent to. */
export async function openStripe(key: string, urls: ApiUrls): Promise<StripeClient> {
  const options = stripeOptions(urls);
  // Not at the top: a process that sells nothing for money does not load it.
  const { default: Stripe } = await import('stripe');
  return new Stripe(key, { ...options, httpClient: Stripe.createFetchHttpClient() });
}

/** `webhook` takes names of functions in schema webhook of DB2. */
export function openPayments(
  webhook: CallFunction,
  secretOf: SecretSource,
  urls: ApiUrls,
  log: Log,
): PaymentsOf {
  return createPaymentsOf({ webhook, secretOf, open: (key) => openStripe(key, urls), log, now: Date.now });
}
