// Stripe on Node: its own package, with the key of a tenant, at the address that STRIPE_API_URL names.

import type { CallFunction } from '#core/call_function.ts';
import { createPaymentsOf } from '#core/orders/keys.ts';
import type { PaymentsOf } from '#core/orders/ports.ts';
import { STRIPE_TIMEOUT_MS, type StripeClient } from '#core/orders/stripe.ts';
import type { Log } from '#core/ports.ts';
import { stripe as source } from '#core/webhook/backfill/stripe.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import { createFindSecret, type SecretSource, Secrets } from '#core/webhook/secrets.ts';
import { type ApiUrls, apiUrl } from '../webhook/backfill.ts';

/** Throws where the address is not one that a key may be sent to. */
export async function openStripe(key: string, urls: ApiUrls): Promise<StripeClient> {
  const { protocol, hostname, port } = new URL(apiUrl(source, urls));
  // Not at the top: a process that sells nothing for money does not load it.
  const { default: Stripe } = await import('stripe');
  return new Stripe(key, {
    host: hostname,
    protocol: protocol === 'http:' ? 'http' : 'https',
    ...(port !== '' && { port }),
    maxNetworkRetries: 0,
    timeout: STRIPE_TIMEOUT_MS,
    httpClient: Stripe.createFetchHttpClient(),
    telemetry: false,
  });
}

/** `webhook` takes names of functions in schema webhook of DB2. */
export function openPayments(
  webhook: CallFunction,
  secretOf: SecretSource,
  urls: ApiUrls,
  log: Log,
): PaymentsOf {
  const secrets = new Secrets({ findSecret: createFindSecret(webhook), secretOf, now: Date.now });
  return createPaymentsOf({
    endpoints: () => createOperatorStore(webhook).listEndpoints(),
    readSecret: (name, minChars) => secrets.read(name, minChars),
    secretOf,
    open: (key) => openStripe(key, urls),
    log,
    now: Date.now,
  });
}
