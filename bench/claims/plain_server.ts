// The plain design behind the very same door: same HTTP server, same reading and checking of the request, but each
// request is a statement of its own on a pool of ten connections.

import { identify } from '#core/auth.ts';
import { CLAIM_BODY } from '#core/claim.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, Router, readJson, refuse } from '#core/router.ts';
import { createDatabase } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { HttpServer } from '../../src/server/http.ts';
import { OperatorAuth } from '../../src/server/operator_auth.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { createTokenPorts } from '../../src/server/tokens.ts';

const CONNECTIONS = 10;

type Claimed = { claim_resource_and_queue: string | null };

export async function startPlainServer(url: string, keys: { adminKey: string; jwtSecret: string }) {
  const log = createLog('warn');
  const tokens = createTokenPorts(keys, new OperatorAuth(keys.adminKey, Date.now));
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

  // wrk leaves in the middle of its last requests; their statements must end before the connections do.
  const underWay = new Set<Promise<HttpResponse>>();
  function track(request: HttpRequest, poolId: string): Promise<HttpResponse> {
    const answer = claim(request, poolId);
    underWay.add(answer);
    return answer.finally(() => underWay.delete(answer));
  }

  const door = new Router([{ method: 'POST', path: '/v1/pools/:pool/claims', handle: track }], log);
  const http = new HttpServer(door, log);
  const port = await http.listen(0);
  const server: RunningServer = {
    url: `http://127.0.0.1:${port}`,
    port,
    async stop() {
      await http.close();
      await Promise.allSettled(underWay);
      await database.end();
    },
  };
  return server;
}
