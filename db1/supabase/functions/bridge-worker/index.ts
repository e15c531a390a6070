// Carries DB1's queue and inbox to DB2, and paid orders between both and Stripe. POST, with the service role key as bearer.

import { createClient } from 'jsr:@supabase/supabase-js@2';
import { Webhook } from 'npm:standardwebhooks@1';
import { createEndPorts } from '../_shared/bridge/ends.ts';
import { createSign } from '../_shared/bridge/hook_request.ts';
import { createIntake, createLedger } from '../_shared/bridge/store.ts';
import { requireKey } from '../_shared/edge/auth.ts';
import { bridgeWorkerRoute } from '../_shared/edge/bridge_worker.ts';
import { createHandler } from '../_shared/edge/handler.ts';
import { createEdgeHook, type FetchWithHost } from '../_shared/edge/hook.ts';
import { carrierPorts } from '../_shared/edge/inbox.ts';
import { createEdgeLog } from '../_shared/edge/log.ts';
import { orderPorts } from '../_shared/edge/orders.ts';
import { type CreateClient, callDatabase } from '../_shared/edge/rpc.ts';
import type { StripeOptions } from '../_shared/orders/stripe.ts';
import { NO_METRICS } from '../_shared/ports.ts';

const env = (name: string): string | undefined => Deno.env.get(name);
const log = createEdgeLog(env('SLUICE_LOG'), console.error);

const connect: CreateClient = (url, key, options) => createClient(url, key, options);
/** Undefined on a runtime that is too old for it. */
const fetchWithHost = ((): FetchWithHost | undefined => {
  if (typeof Deno.createHttpClient !== 'function') return undefined;
  const client = Deno.createHttpClient({ allowHost: true });
  return (url, init) => fetch(url, { ...init, client });
})();

const db1 = callDatabase(connect, env, 'DB1');
const db2Of = (schema: string) => callDatabase(connect, env, 'DB2', schema);
const db2 = db2Of('public');

/** Loaded when the first payment needs it. */
const open = async (key: string, options: StripeOptions) => {
  const { default: Stripe } = await import('npm:stripe@23');
  return new Stripe(key, { ...options, httpClient: Stripe.createFetchHttpClient() });
};

const route = bridgeWorkerRoute('/bridge-worker', {
  authorize: requireKey(env('DB1_SUPABASE_SERVICE_ROLE_KEY')),
  intake: createIntake(db1),
  ends: createEndPorts(db1, () => db2, log),
  ledger: () => createLedger(db2),
  ...carrierPorts(db1, db2Of, log),
  ...orderPorts(db1, db2Of, env, open, log),
  hook: createEdgeHook(
    Deno.resolveDns,
    fetchWithHost,
    createSign(env('SLUICE_HOOK_SECRET'), (secret) => new Webhook(secret)),
  ),
  log,
  metrics: NO_METRICS,
  now: Date.now,
  random: Math.random,
});

Deno.serve(createHandler([route], log));
