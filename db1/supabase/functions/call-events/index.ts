// Takes signed call events. No token: POST /call-events is let in by its signature alone. The replay cache is this
// isolate's own and forgets with it; DB2's unique index decides. Secrets are in DB2's Vault, or
// environment variables of the function.

import { createClient } from 'jsr:@supabase/supabase-js@2';
import { MemoryReplayCache } from '../_shared/calls/replay_cache.ts';
import { CallRoutes } from '../_shared/calls/routes.ts';
import { createCallStore } from '../_shared/calls/store.ts';
import { createHandler } from '../_shared/edge/handler.ts';
import { createEdgeInbox } from '../_shared/edge/inbox.ts';
import { createEdgeLog } from '../_shared/edge/log.ts';
import { type CreateClient, callDatabase } from '../_shared/edge/rpc.ts';
import { NO_METRICS } from '../_shared/ports.ts';
import { webHmac } from '../_shared/webhook/hmac.ts';
import { createFindSecret } from '../_shared/webhook/secrets.ts';

const env = (name: string): string | undefined => Deno.env.get(name);
const log = createEdgeLog(env('SLUICE_LOG'), console.error);

const connect: CreateClient = (url, key, options) => createClient(url, key, options);

const callRoutes = new CallRoutes({
  store: createCallStore(callDatabase(connect, env, 'DB2', 'calls')),
  findSecret: createFindSecret(callDatabase(connect, env, 'DB2', 'webhook')),
  cache: new MemoryReplayCache(Date.now),
  secretOf: env,
  hmac: webHmac,
  inbox: createEdgeInbox(callDatabase(connect, env, 'DB1'), log),
  metrics: NO_METRICS,
  log,
  now: Date.now,
});

Deno.serve(createHandler(callRoutes.routes(), log));
