// Takes the signed events of providers. No token: POST /webhooks/<endpoint> is let in by its signature alone.
// Queued events are processed by `sluice work`, or on DB2 by cron; the secrets are in DB2's Vault, or environment variables of the function.
// While DB2 is away, deliveries go to the inbox of DB1 where their endpoint accepts that; bridge-worker carries them on.

import { createClient } from 'jsr:@supabase/supabase-js@2';
import { createHandler } from '../_shared/edge/handler.ts';
import { createEdgeInbox } from '../_shared/edge/inbox.ts';
import { createEdgeLog } from '../_shared/edge/log.ts';
import { type CreateClient, callDatabase } from '../_shared/edge/rpc.ts';
import { NO_METRICS } from '../_shared/ports.ts';
import { toBase64 } from '../_shared/webhook/bytes.ts';
import { webHmac } from '../_shared/webhook/hmac.ts';
import { WebhookRoutes } from '../_shared/webhook/routes.ts';
import { createFindSecret } from '../_shared/webhook/secrets.ts';
import { createWebhookStore } from '../_shared/webhook/store.ts';

const env = (name: string): string | undefined => Deno.env.get(name);
const log = createEdgeLog(env('SLUICE_LOG'), console.error);

const connect: CreateClient = (url, key, options) => createClient(url, key, options);

const call = callDatabase(connect, env, 'DB2', 'webhook');

const webhookRoutes = new WebhookRoutes({
  store: createWebhookStore(call, toBase64),
  findSecret: createFindSecret(call),
  hmac: webHmac,
  inbox: createEdgeInbox(callDatabase(connect, env, 'DB1'), log),
  secretOf: env,
  // An Edge Function has no worker to wake: workers poll.
  wake: () => undefined,
  log,
  metrics: NO_METRICS,
  now: Date.now,
});

Deno.serve(createHandler(webhookRoutes.routes(), log));
