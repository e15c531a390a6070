// The call-event door behind real HTTP, a sender that signs, and a look at what the database holds.

import { createHmac } from 'node:crypto';
import type { Agent } from 'node:http';
import type pg from 'pg';
import type { Log, Metrics } from '#core/ports.ts';
import { Router } from '#core/router.ts';
import { type OpenCallRoutes, openCallRoutes } from '../../src/calls/calls.ts';
import { createLog } from '../../src/log.ts';
import { HttpServer } from '../../src/server/http.ts';
import { type Answer, ask } from '../server/support.ts';
import { allowSecrets } from '../webhook/world.ts';

export const SITE = '6f1c2a52-7f0e-4c8f-9d51-2f4c1f3f9a10';
export const SECRET = 'secret-of-the-first-site';
export const OTHER_SITE = 'other-site';
export const OTHER_SECRET = 'secret-of-the-other-site';
export const OPEN_SITE = 'open-site';

/** By the names that the sites in the database have for them. */
export const SECRETS: Record<string, string> = {
  SITE_SECRET: SECRET,
  OTHER_SECRET,
  OLD_SECRET: 'secret-before-the-rotation',
};

/** A site that signs, one with other secrets and kinds of its own, and one that need not sign. */
export async function addSites(client: pg.Client): Promise<void> {
  await allowSecrets(client, Object.keys(SECRETS));
  await client.query(
    `insert into public.call_sites (site_id, secret_names, require_signature, kinds) values
       ($1, '{SITE_SECRET,OLD_SECRET}', true, null), ($2, '{OTHER_SECRET}', true, '{ring,hangup}'), ($3, '{}', false, null)`,
    [SITE, OTHER_SITE, OPEN_SITE],
  );
}

export interface CountedMetrics extends Metrics {
  /** How often, by "site result reason". */
  readonly counts: Map<string, number>;
}

export function countMetrics(): CountedMetrics {
  const counts = new Map<string, number>();
  return {
    counts,
    count: (_name, { site, result, reason }) => {
      const key = [site, result, reason].join(' ').trim();
      counts.set(key, (counts.get(key) ?? 0) + 1);
    },
    observe: () => undefined,
  };
}

export interface CallServer {
  url: string;
  port: number;
  calls: OpenCallRoutes;
  stop(): Promise<void>;
}

export interface CallServerOptions {
  db2Url: string;
  redisUrl?: string;
  metrics?: Metrics;
  log?: Log;
}

export async function startCallServer(options: CallServerOptions): Promise<CallServer> {
  const { db2Url, redisUrl, metrics = countMetrics(), log = createLog('silent') } = options;
  const secretOf = (name: string) => SECRETS[name];
  const calls = openCallRoutes({ db2Url, secretOf, ...(redisUrl && { redisUrl }) }, metrics, log);
  const http = new HttpServer(new Router(calls.routes(), log), log);
  const port = await http.listen(0, '127.0.0.1');
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    calls,
    async stop() {
      const closed = http.close();
      await calls.drain();
      await closed;
      await calls.end();
    },
  };
}

export const nowSec = (): number => Math.floor(Date.now() / 1_000);

/** Our own few lines over node:crypto, so that the door is not checked against itself. */
export function sign(site: string, timestamp: string, body: string | Uint8Array, secret: string): string {
  return createHmac('sha256', secret).update(`${site}.${timestamp}.`).update(body).digest('hex');
}

export interface SignedRequest {
  headers: Record<string, string>;
  body: string | Uint8Array;
}

export function signedRequest(
  body: unknown,
  { site = SITE, secret = SECRET, timestamp = String(nowSec()) } = {},
): SignedRequest {
  const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  return {
    headers: {
      'x-ops-site': site,
      'x-ops-timestamp': timestamp,
      'x-ops-signature': sign(site, timestamp, bytes, secret),
    },
    body: bytes,
  };
}

export function post(url: string, request: SignedRequest, agent?: Agent): Promise<Answer> {
  return ask(`${url}/call-events`, { method: 'POST', ...request, ...(agent && { agent }) });
}

export function callBody(change: Record<string, unknown> = {}): Record<string, unknown> {
  return { kind: 'ring', occurred_at: '2026-02-24T10:00:00.123456Z', payload: { line: 7 }, ...change };
}

export const NOOP = { status: 'noop', reason: 'idempotent_conflict' };

export async function countCalls(client: pg.Client): Promise<number> {
  return (await client.query('select count(*)::int as n from public.calls')).rows[0].n;
}
