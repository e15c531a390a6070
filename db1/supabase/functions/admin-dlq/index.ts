// The dead letters: list, show, replay, discard. With the service role key as bearer: the audit log names service_role.

import { createClient } from 'jsr:@supabase/supabase-js@2';
import { createEndingStore, DeadLetterRoutes } from '../_shared/dead_letters.ts';
import { requireKey } from '../_shared/edge/auth.ts';
import { createHandler } from '../_shared/edge/handler.ts';
import { createEdgeLog } from '../_shared/edge/log.ts';
import { type CreateClient, callDatabase } from '../_shared/edge/rpc.ts';

const env = (name: string): string | undefined => Deno.env.get(name);
const log = createEdgeLog(env('SLUICE_LOG'), console.error);

const connect: CreateClient = (url, key, options) => createClient(url, key, options);

const deadLetterRoutes = new DeadLetterRoutes({
  ...createEndingStore(callDatabase(connect, env, 'DB1'), callDatabase(connect, env, 'DB2'), log),
  authorize: requireKey(env('DB1_SUPABASE_SERVICE_ROLE_KEY')),
});

Deno.serve(createHandler(deadLetterRoutes.routes('/admin-dlq'), log));
