// What a key may do (docs.stripe.com/keys, restricted keys).

import { Refusal } from './refusal.ts';

export interface StripeKey {
  /** `event_read`, `charge_read`, `charge_write`, `checkout_session_read`, …; a secret key may everything. */
  rights: readonly string[] | 'all';
  /** Connected accounts that it may ask for. */
  accounts?: readonly string[];
}

const OWN_ACCOUNT = 'acct_own';
/** Refunds stand among the charges. */
const OBJECTS: readonly (readonly [path: string, object: string])[] = [
  ['/v1/events', 'event'],
  ['/v1/checkout/sessions', 'checkout_session'],
  ['/v1/payment_intents', 'payment_intent'],
  ['/v1/disputes', 'dispute'],
];

/** `may` is undefined for a key that does not exist. */
export function refusalOfKey(
  may: StripeKey | undefined,
  key: string,
  method: string,
  path: string,
  account: string,
): Refusal | undefined {
  const shown = `${key.slice(0, 8)}********${key.slice(-4)}`;
  if (may === undefined) return new Refusal(401, `Invalid API Key provided: ${shown}`);
  const [, object = 'charge'] = OBJECTS.find(([begin]) => path.startsWith(begin)) ?? [];
  const right = `${object}_${method === 'GET' ? 'read' : 'write'}`;
  if (may.rights !== 'all' && !may.rights.includes(right))
    return new Refusal(
      403,
      `The provided key '${shown}' does not have the required permissions for this endpoint on account '${account || OWN_ACCOUNT}'. Having the 'rak_${right}' permission would allow this request to continue.`,
    );
  if (account === '' || may.accounts?.includes(account)) return undefined;
  return new Refusal(
    403,
    `The provided key '${shown}' does not have access to account '${account}' (or that account does not exist). Application access may have been revoked.`,
    { code: 'account_invalid' },
  );
}
