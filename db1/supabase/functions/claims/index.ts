// Sends a buyer to Stripe: POST /claims/<claim>/checkout, as the server's /v1/claims/<claim>/checkout. With the user's token, or the
// secret of the claim in X-Claim-Secret. Buyers come back to SLUICE_PUBLIC_URL; bridge-worker carries what follows.

import { createClient } from 'jsr:@supabase/supabase-js@2';
import * as jose from 'npm:jose@6';
import { checkoutFunction } from '../_shared/edge/checkout.ts';
import { createHandler } from '../_shared/edge/handler.ts';
import { createEdgeLog } from '../_shared/edge/log.ts';
import { type CreateClient, callDatabase } from '../_shared/edge/rpc.ts';
import type { StripeOptions } from '../_shared/orders/stripe.ts';

const env = (name: string): string | undefined => Deno.env.get(name);
const log = createEdgeLog(env('SLUICE_LOG'), console.error);

const connect: CreateClient = (url, key, options) => createClient(url, key, options);

/** Loaded when the first checkout needs it. */
const open = async (key: string, options: StripeOptions) => {
  const { default: Stripe } = await import('npm:stripe@23');
  return new Stripe(key, { ...options, httpClient: Stripe.createFetchHttpClient() });
};

const route = checkoutFunction('/claims/:claim/checkout', {
  db1: callDatabase(connect, env, 'DB1'),
  webhook: callDatabase(connect, env, 'DB2', 'webhook'),
  env,
  open,
  jose,
  log,
});

Deno.serve(createHandler([route], log));
