// The plain design behind the very same server: same reading and checking of the request, but each request is a statement of
// its own on a pool of ten connections.

import { identify } from '#core/auth.ts';
import { CLAIM_BODY } from '#core/claim_body.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, readJson, refuse } from '#core/router.ts';
import { createDatabase } from '../../src/db/database.ts';
import { OperatorAuth } from '../../src/server/operator_auth.ts';
import { createTokenPorts } from '../../src/server/tokens.ts';
import { type BenchServer, KEYS, listen, log } from '../servers.ts';

const CONNECTIONS = 10;

type Claimed = { claim_resource_and_queue: string | null };

export function startPlainServer(url: string): Promise<BenchServer> {
  const tokens = createTokenPorts(KEYS, new OperatorAuth(KEYS.adminKey, Date.now));
  const database = createDatabase({ url, max: CONNECTIONS, applicationName: 'plain-claims', log });

  async function claim(request: HttpRequest, poolId: string): Promise<HttpResponse> {
    await identify(tokens, request);
    const { user_id, request_id = null } = readJson(request, CLAIM_BODY);
    const [row] = await database.call<Claimed>('plain.claim_resource_and_queue', {
      p_pool_id: poolId,
      p_user_id: user_id,
    });
    const resource_id = row?.claim_resource_and_queue ?? null;
    if (resource_id === null) return refuse('sold_out', request.requestId);
    return jsonResponse(201, { resource_id, pool_id: poolId, user_id, request_id, status: 'queued' });
  }

  return listen([{ method: 'POST', path: '/v1/pools/:pool/claims', handle: claim }], database.end);
}
