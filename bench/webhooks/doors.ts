// The real server, and a door that reads and checks the same and then makes one insert for each delivery.

import { type HttpRequest, type HttpResponse, jsonResponse, type Route, Router } from '#core/router.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { createDatabase } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { HttpServer } from '../../src/server/http.ts';
import { startServer } from '../../src/server/server.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { SECRET, type World } from './world.ts';

export type BenchServer = { url: string; stop(): Promise<void> };

const KEYS = { adminKey: 'bench-admin-key', jwtSecret: 'bench-secret-of-at-least-thirty-two-bytes' };
const MAX_BODY_BYTES = 64 * 1024;
const MS_PER_SEC = 1_000;

export function startCoalesced({ db1Url, db2Url }: World): Promise<BenchServer> {
  return startServer({ port: 0, db1Url, db2Url, ...KEYS, secretOf: () => SECRET });
}

export async function startSingle({ db2Url, webhookId }: World, connections: number): Promise<BenchServer> {
  const log = createLog('warn');
  const database = createDatabase({ url: db2Url, max: connections, applicationName: 'plain-webhooks', log });
  const stripe = providerNamed('stripe');
  if (stripe === undefined) throw new Error('there is no provider stripe');

  async function deliver(request: HttpRequest): Promise<HttpResponse> {
    const signed = { ...request, url: '' };
    const context = { port: nodeHmac, nowSec: Math.floor(Date.now() / MS_PER_SEC) };
    const verification = await stripe?.verify(signed, [SECRET], context);
    if (!verification?.ok) return jsonResponse(401, { reason: verification?.reason });
    const [event] = (await stripe?.read(signed, context)) ?? [];
    if (event === undefined) return jsonResponse(400, {});
    const rows = await database.call('bench.insert_event', {
      p_webhook_id: webhookId,
      p_event_id: event.eventId,
      p_event_type: event.eventType,
      p_occurred_at: event.occurredAt,
      p_body: Buffer.from(request.body).toString('base64'),
      p_hash: event.hash,
      p_signature: verification.signature,
    });
    return jsonResponse(200, { status: rows.length === 1 ? 'recorded' : 'duplicate' });
  }

  // wrk leaves in the middle of its last requests; their statements must end before the connections do.
  const underWay = new Set<Promise<HttpResponse>>();
  const route: Route & { maxBodyBytes: number } = {
    method: 'POST',
    path: '/webhooks/:endpoint',
    maxBodyBytes: MAX_BODY_BYTES,
    handle(request) {
      const answer = deliver(request);
      underWay.add(answer);
      return answer.finally(() => underWay.delete(answer));
    },
  };
  const http = new HttpServer(new Router([route], log), log);
  const port = await http.listen(0, '127.0.0.1');
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await http.close();
      await Promise.allSettled(underWay);
      await database.end();
    },
  };
}
