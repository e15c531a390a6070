// The dead letters: list, show, replay, discard. With the service role key as bearer; X-Operator names who acts.

import { createClient } from 'jsr:@supabase/supabase-js@2';
import { createDeadLetterStore, DeadLetterRoutes } from '../_shared/dead_letters.ts';
import { requireKey } from '../_shared/edge/auth.ts';
import { createHandler } from '../_shared/edge/handler.ts';
import { createEdgeLog } from '../_shared/edge/log.ts';
import { callOver, type RpcClient, timedFetch } from '../_shared/edge/rpc.ts';

const env = (name: string): string | undefined => Deno.env.get(name);
const log = createEdgeLog(env('SLUICE_LOG'), console.error);
const key = env('DB1_SUPABASE_SERVICE_ROLE_KEY');

const connect = (): RpcClient =>
  createClient(env('DB1_SUPABASE_URL') ?? '', key ?? '', {
    auth: { persistSession: false, autoRefreshToken: false },
    global: { fetch: timedFetch },
  });

const deadLetterRoutes = new DeadLetterRoutes({
  ...createDeadLetterStore(callOver(connect)),
  authorize: requireKey(key),
});

Deno.serve(createHandler(deadLetterRoutes.routes('/admin-dlq'), log));
