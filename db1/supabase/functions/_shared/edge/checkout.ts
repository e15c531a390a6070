// The checkout behind the Edge Function: the route of the server, with DB1 over PostgREST and one cell. Operators' keys are the
// server's; here the service role key acts for all buyers. Limits for one address are the platform's business.

import type { AuthPorts } from '../auth.ts';
import type { CallFunction } from '../call_function.ts';
import type { ClaimRecord } from '../claim.ts';
import { findOwn } from '../claim_owner.ts';
import { checkoutRoute, createCheckoutStore } from '../orders/checkout.ts';
import { type Log, NO_METRICS } from '../ports.ts';
import { createVerifyToken, type Jose } from '../tokens.ts';
import { toHex, utf8 } from '../webhook/bytes.ts';
import { webHmac } from '../webhook/hmac.ts';
import type { SecretSource } from '../webhook/secrets.ts';
import { isKey } from './auth.ts';
import type { EdgeRoute } from './handler.ts';
import { edgePayments, type OpenStripe } from './orders.ts';

export interface CheckoutFunction {
  /** Functions of schema public of DB1. */
  readonly db1: CallFunction;
  /** Functions of schema webhook of DB2. */
  readonly webhook: CallFunction;
  readonly env: SecretSource;
  readonly open: OpenStripe;
  readonly jose: Jose;
  readonly log: Log;
}

/** A project's public key of the newer kind, which is not a JWT: it says no more than that a page of the project asks. */
const PUBLISHABLE = /^sb_publishable_/;

export function checkoutFunction(
  path: string,
  { db1, webhook, env, open, jose, log }: CheckoutFunction,
): EdgeRoute {
  const owner = {
    ...edgeAuth(env, jose),
    getClaim: async (claimId: string, secretHash: string | null) =>
      (await db1<ClaimRecord>('get_claim', { p_claim_id: claimId, p_secret_hash: bytea(secretHash) }))[0],
    hash: async (text: string) => toHex(await webHmac.sha256(utf8(text))),
  };
  const route = checkoutRoute(
    {
      own: (request, claimId) => findOwn(owner, request, claimId),
      store: createCheckoutStore((_, ask) => ask(db1), bytea),
      paymentsOf: edgePayments(webhook, env, open, log),
      publicUrl: () => env('SLUICE_PUBLIC_URL') || undefined,
      metrics: NO_METRICS,
      log,
    },
    path,
  );
  // A buyer's page asks.
  return { ...route, isForPages: true };
}

function edgeAuth(env: SecretSource, jose: Jose): AuthPorts {
  const verifyToken = createVerifyToken(
    { jwtSecret: env('SLUICE_JWT_SECRET') || undefined, jwksUrl: env('SLUICE_JWKS_URL') || undefined },
    jose,
  );
  const bare = (role: string) => ({ role, sub: undefined, is_anonymous: undefined });
  return {
    findOperator: async () => undefined,
    async verifyToken(token) {
      if (await isKey(token, env('DB1_SUPABASE_SERVICE_ROLE_KEY'))) return bare('service_role');
      return PUBLISHABLE.test(token) ? bare('anon') : verifyToken(token);
    },
  };
}

/** As Postgres reads bytes out of JSON. */
function bytea(hex: string | null): string | null {
  return hex === null ? null : `\\x${hex}`;
}
