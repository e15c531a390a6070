// The servers that HTTP rows measure: the real one, and plain ones with a statement for each request.

import { type HttpResponse, type Route, Router } from '#core/router.ts';
import { createLog } from '../src/log.ts';
import { HttpServer } from '../src/server/http.ts';
import { startServer } from '../src/server/server.ts';
import type { World } from './world.ts';

export type BenchServer = { url: string; port: number; stop(): Promise<void> };

export const KEYS = { adminKey: 'bench-admin-key', jwtSecret: 'bench-secret-of-at-least-thirty-two-bytes' };
export const log = createLog('warn');

/** `secret` is that of every webhook endpoint. */
export function startOurs({ db1Url, db2Url }: World, secret?: string): Promise<BenchServer> {
  // The server would tell of every start and stop between the lines of progress.
  process.env.SLUICE_LOG ??= 'warn';
  return startServer({ port: 0, db1Url, db2Url, ...KEYS, ...(secret && { secretOf: () => secret }) });
}

/** The same HTTP server with other routes; `end` closes what they use. */
export async function listen(routes: readonly Route[], end: () => Promise<void>): Promise<BenchServer> {
  // Clients leave in the middle of their last requests; the statements of these must end before the connections do.
  const underWay = new Set<Promise<HttpResponse>>();
  const tracked = routes.map((route) => ({
    ...route,
    handle(...args: Parameters<Route['handle']>): Promise<HttpResponse> {
      const answer = Promise.resolve(route.handle(...args));
      underWay.add(answer);
      return answer.finally(() => underWay.delete(answer));
    },
  }));
  const http = new HttpServer(new Router(tracked, log), log);
  const port = await http.listen(0, '127.0.0.1');
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async stop() {
      await http.close();
      await Promise.allSettled(underWay);
      await end();
    },
  };
}
