import type { Provider } from './provider.ts';
import { daily } from './providers/daily.ts';
import { github } from './providers/github.ts';
import { hmac } from './providers/hmac.ts';
import { shopify } from './providers/shopify.ts';
import { slack } from './providers/slack.ts';
import { standard } from './providers/standard.ts';
import { stripe } from './providers/stripe.ts';
import { twilio } from './providers/twilio.ts';
import { whatsapp } from './providers/whatsapp.ts';

export { handshake } from './providers/whatsapp.ts';

const PROVIDERS: readonly Provider[] = [
  stripe,
  twilio,
  whatsapp,
  daily,
  github,
  shopify,
  slack,
  standard,
  hmac,
];

export const PROVIDER_NAMES: readonly string[] = PROVIDERS.map(({ name }) => name);

const byName = new Map(PROVIDERS.map((provider) => [provider.name, provider]));

/** Undefined for an unknown name: the caller must then refuse the request, never accept it unverified. */
export function providerNamed(name: string): Provider | undefined {
  return byName.get(name);
}
