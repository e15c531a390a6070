// Carries what waits on DB1's queue, and in its inbox, to DB2 or to the dead letters. POST, with the service role key as bearer.

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
import { type CreateClient, callDatabase } from '../_shared/edge/rpc.ts';
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
const db2 = callDatabase(connect, env, 'DB2');
const ledger = createLedger(db2);

const route = bridgeWorkerRoute('/bridge-worker', {
  authorize: requireKey(env('DB1_SUPABASE_SERVICE_ROLE_KEY')),
  intake: createIntake(db1),
  ends: createEndPorts(db1, () => db2, log),
  ledger: () => ledger,
  ...carrierPorts(db1, (schema) => callDatabase(connect, env, 'DB2', schema), log),
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
