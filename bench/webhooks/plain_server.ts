// A server that reads and checks as the real one does, and then makes one insert for each delivery.

import { type HttpRequest, type HttpResponse, jsonResponse } from '#core/router.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { createDatabase } from '../../src/db/database.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { type BenchServer, listen, log } from '../servers.ts';
import { SECRET, type WebhooksWorld } from './world.ts';

const MAX_BODY_BYTES = 64 * 1024;
const MS_PER_SEC = 1_000;

export function startPlainServer(
  { db2Url, webhookId }: WebhooksWorld,
  connections: number,
): Promise<BenchServer> {
  const database = createDatabase({ url: db2Url, max: connections, applicationName: 'plain-webhooks', log });
  const stripe = providerNamed('stripe');
  if (stripe === undefined) throw new Error('the provider stripe is missing');

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

  return listen(
    [{ method: 'POST', path: '/webhooks/:endpoint', maxBodyBytes: MAX_BODY_BYTES, handle: deliver }],
    database.end,
  );
}
