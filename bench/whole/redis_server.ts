// The same HTTP server, reading and checking; a claim is one Lua script. The client sends what arrives in one turn of the event
// loop together, so Redis writes its log once for many.

import { createClient } from 'redis';
import { identify } from '#core/auth.ts';
import { CLAIM_BODY } from '#core/claim_body.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, readJson, refuse } from '#core/router.ts';
import { OperatorAuth } from '../../src/server/operator_auth.ts';
import { createTokenPorts } from '../../src/server/tokens.ts';
import { listen, KEYS as SERVER_KEYS } from '../servers.ts';
import { KEYS } from './redis_keys.ts';
import { serve } from './served.ts';

const CLAIM = `
  local known = redis.call('hget', KEYS[2], ARGV[1])
  if known then return {'same', known} end
  local slot = redis.call('lpop', KEYS[1])
  if not slot then return {'sold_out'} end
  redis.call('hset', KEYS[2], ARGV[1], slot)
  redis.call('xadd', KEYS[3], '*', 'resource_id', slot, 'pool_id', ARGV[3], 'user_id', ARGV[2])
  return {'claimed', slot}`;

serve(async ({ url }: { url: string }) => {
  const tokens = createTokenPorts(SERVER_KEYS, new OperatorAuth(SERVER_KEYS.adminKey, Date.now));
  const client = createClient({ url });
  await client.connect();
  const sha = await client.scriptLoad(CLAIM);
  const keys = [KEYS.slots, KEYS.requests, KEYS.stream];

  async function claim(request: HttpRequest, poolId: string): Promise<HttpResponse> {
    await identify(tokens, request);
    const { user_id = '', request_id } = readJson(request, CLAIM_BODY);
    const answer = await client.evalSha(sha, {
      keys,
      arguments: [`${user_id}\n${request_id}`, user_id, poolId],
    });
    const [outcome, resource_id] = answer as [string, string];
    if (outcome === 'sold_out') return refuse('sold_out', request.requestId);
    const status = outcome === 'claimed' ? 201 : 200;
    return jsonResponse(status, { resource_id, pool_id: poolId, user_id, request_id, status: 'queued' });
  }

  const routes = [{ method: 'POST' as const, path: '/v1/pools/:pool/claims', handle: claim }];
  const server = await listen(routes, async () => client.destroy());
  return { answer: server.port, end: server.stop };
});
