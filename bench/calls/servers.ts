// The real door, and the same reading and checking with a statement for each event.

import { readCallBody } from '#core/calls/body.ts';
import { hashOfSignature, refusalOfCall } from '#core/calls/signature.ts';
import { createCallStore } from '#core/calls/store.ts';
import { NO_METRICS } from '#core/ports.ts';
import { jsonResponse, type Route } from '#core/router.ts';
import { openCallRoutes } from '../../src/calls/calls.ts';
import { createDatabase } from '../../src/db/database.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { type BenchServer, listen, log } from '../servers.ts';

export const SITE = 'bench';
export const SECRET = 'bench-secret-of-the-site';

export function startCoalesced(db2Url: string): Promise<BenchServer> {
  const calls = openCallRoutes({ db2Url, secretOf: () => SECRET }, NO_METRICS, log);
  return listen(calls.routes(), calls.end);
}

export function startSingle(db2Url: string, connections: number): Promise<BenchServer> {
  const database = createDatabase({ url: db2Url, max: connections, applicationName: 'sluice bench', log });
  const store = createCallStore((name, args) => database.call(`calls.${name}`, args));
  const route: Route = {
    method: 'POST',
    path: '/call-events',
    async handle({ headers, body }) {
      const signature = String(headers['x-ops-signature']);
      const call = { site: SITE, timestamp: String(headers['x-ops-timestamp']), body };
      const nowSec = Math.floor(Date.now() / 1_000);
      const refusal = await refusalOfCall(call, signature, [SECRET], nodeHmac, nowSec);
      if (refusal !== undefined) return jsonResponse(401, { refusal });
      const signatureHash = await hashOfSignature(signature, nodeHmac);
      const [recorded] = await store.recordCalls([{ siteId: SITE, ...readCallBody(body), signatureHash }]);
      return jsonResponse(200, { status: recorded?.outcome, id: recorded?.id });
    },
  };
  return listen([route], database.end);
}
