// What a hostile neighbour is, and what it sends with.

import { createHmac, randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import type { World } from '../world.ts';
import type { HealthyKind } from './healthy.ts';

/** The product at work, and the way to it. */
export type Place = World & {
  port: number;
  adminKey: string;
  /** A session for a transaction that stays open. It ends with the place. */
  connect(side: 'db1' | 'db2'): Promise<pg.Client>;
};

export type Load = {
  /** How many requests, messages or events it has sent. */
  sent(): number;
  stop(): Promise<void>;
};

export type Neighbour = {
  name: string;
  /** Its number in the review that found it. */
  finding: string;
  about: string;
  /** What is measured beside it. */
  healthy: HealthyKind;
  /** Its pools, endpoints and handlers, made before the quiet measurement. */
  prepare(place: Place): Promise<void>;
  /** `times` is 1, then doubled. Resolves when the load is on; it stays on until it is stopped. */
  start(place: Place, times: number): Promise<Load>;
};

/** A load that is not stopped ends by itself. */
const LONGEST_MS = 300_000;
/** Between two requests of a client, so that the generator leaves the cores to the product. */
const CLIENT_PAUSE_MS = 10;
const SECRET = 'bench-secret-of-the-hostile-endpoint';
const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

/** The environment that a server needs for the hostile endpoint. */
export const HOSTILE_ENV = { WHATSAPP_APP_SECRET: SECRET };

/** Ends what is left of a load, for any number of requests. */
export function boundedSignal(...others: AbortSignal[]): AbortSignal {
  const late = new AbortController();
  setTimeout(() => late.abort(), LONGEST_MS).unref();
  const signal = AbortSignal.any([...others, late.signal]);
  setMaxListeners(0, signal);
  return signal;
}

/** So many clients, each with one request at a time. A refused or broken request is what the product owes them. */
export function crowd(clients: number, visit: (signal: AbortSignal) => Promise<unknown>): Load {
  const leaving = new AbortController();
  const signal = boundedSignal(leaving.signal);
  let sent = 0;
  const client = async (): Promise<void> => {
    while (!signal.aborted) {
      sent++;
      await visit(signal).catch(() => undefined);
      await pause(CLIENT_PAUSE_MS);
    }
  };
  const all = Array.from({ length: clients }, client);
  return {
    sent: () => sent,
    async stop() {
      leaving.abort();
      await Promise.all(all);
    },
  };
}

/** Several loads as one. */
export function together(...loads: Load[]): Load {
  return {
    sent: () => loads.reduce((sum, load) => sum + load.sent(), 0),
    async stop() {
      await Promise.all(loads.map((load) => load.stop()));
    },
  };
}

export function holding(client: pg.Client, load: Load): Load {
  return {
    sent: load.sent,
    async stop() {
      await load.stop();
      await client.query('rollback');
    },
  };
}

export type Ask = {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  signal: AbortSignal;
};

/** Resolves with the status once the answer is read. */
export function ask({ port }: Place, { method = 'POST', path, headers, body, signal }: Ask): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { agent, host: '127.0.0.1', port, method, path, signal };
    const all = { 'content-type': 'application/json', ...headers };
    const asked = request({ ...options, headers: all }, (response) => {
      response.on('error', reject).on('end', () => resolve(response.statusCode ?? 0));
      response.resume();
    });
    asked.on('error', reject).end(body);
  });
}

export function claim(place: Place, pool: string, signal: AbortSignal, requestId = randomUUID()) {
  const body = JSON.stringify({ user_id: `user ${requestId}`, request_id: requestId });
  return ask(place, { path: `/v1/pools/${pool}/claims`, body, signal });
}

/** An event at the hostile endpoint, which is GitHub's. */
export function deliver(place: Place, signal: AbortSignal, id = randomUUID()): Promise<number> {
  const body = JSON.stringify({ zen: id });
  const signature = createHmac('sha256', SECRET).update(body).digest('hex');
  const headers = {
    'x-github-delivery': id,
    'x-github-event': 'ping',
    'x-hub-signature-256': `sha256=${signature}`,
  };
  return ask(place, { path: '/webhooks/hostile', headers, body, signal });
}

/** The endpoint `hostile`, whose SQL handler takes so long. */
export async function addSlowEndpoint(
  { db2 }: Place,
  mode: 'inline' | 'queued',
  seconds: number,
): Promise<void> {
  await db2.value('webhook.add_endpoint', {
    p_name: 'hostile',
    p_provider: 'github',
    p_secret_names: Object.keys(HOSTILE_ENV),
    p_mode: mode,
    p_actor: 'bench',
  });
  await db2.run(`
    create function public.bench_slow_effect(p_event public.webhook_events) returns text language plpgsql as $$
    begin
      perform pg_catalog.pg_sleep(${seconds});
      return null;
    end $$;
    insert into public.webhook_handlers (provider, event_type, kind, name)
    values ('github', '*', 'sql', 'public.bench_slow_effect')`);
}

export async function addPool({ db1 }: Place, pool: string, slots: number): Promise<void> {
  await db1.ask('insert into public.engine_config (pool_id) values ($1)', [pool]);
  await db1.ask(
    'insert into public.inventory_slots (pool_id) select $1 from pg_catalog.generate_series(1, $2::int)',
    [pool, slots],
  );
}

const MAX_BATCH = 500;

/** A hook that answers 200 after so long, and its address. */
export async function startSlowHook(answerMs: number): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume();
    setTimeout(() => response.writeHead(200).end(), answerMs).unref();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Past the trigger that wants a public address: what allows a host is called otherwise in older versions. */
export function setHook(
  { db1 }: Place,
  pool: string,
  column: 'validation_webhook_url' | 'commit_webhook_url',
  url: string,
): Promise<void> {
  return db1.run(`
    set session_replication_role = replica;
    update public.engine_config set ${column} = '${url}' where pool_id = '${pool}';
    reset session_replication_role`);
}

/** Claims made in the database, so that their messages wait for the bridge. */
export async function claimMany({ db1 }: Place, pool: string, count: number): Promise<void> {
  for (let made = 0; made < count; made += MAX_BATCH) {
    const size = Math.min(MAX_BATCH, count - made);
    const all = <T>(value: (at: number) => T): T[] => Array.from({ length: size }, (_, at) => value(at));
    const outcomes = await db1.rows<{ outcome: string }>('public.claim_batch', {
      p_pool_ids: all(() => pool),
      p_user_ids: all(() => randomUUID()),
      p_request_ids: all(() => null),
    });
    const refused = outcomes.find(({ outcome }) => outcome !== 'claimed');
    if (refused) throw new Error(`a claim of the hostile pool ended as ${refused.outcome}`);
  }
}
