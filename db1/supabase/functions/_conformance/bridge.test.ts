// The cases of bridge.ts as an Edge Function meets them: supabase-js over PostgREST, `fetch`, Deno.

import { createEdgeHook } from '../_shared/edge/hook.ts';
import { callOver } from '../_shared/edge/rpc.ts';
import { cases, run, type World } from './bridge.ts';
import { db1, db2, makePool, statusOf, ticketsOf } from './stack.ts';

const world: World = {
  db1: callOver(() => db1),
  db2: callOver(() => db2),
  hook: createEdgeHook(Deno.resolveDns),
  makePool,
  statusOf,
  ticketsOf,
  async serve(answer, during) {
    const server = Deno.serve(
      { port: 0, hostname: '127.0.0.1', onListen: () => undefined },
      async (request) => {
        const key = request.headers.get('x-idempotency-key');
        const claimId = request.headers.get('x-claim-id');
        const path = new URL(request.url).pathname;
        const status = answer({ path, key, claimId, body: await request.json() });
        return new Response(null, { status });
      },
    );
    try {
      await during(`http://127.0.0.1:${server.addr.port}`);
    } finally {
      await server.shutdown();
    }
  },
};

for (const one of cases) Deno.test(`conformance: ${one.name}`, () => run(one, world));
