// A client that shows what really went over the wire, and a server with known secrets.

import assert from 'node:assert/strict';
import { type Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { SignJWT } from 'jose';
import pg from 'pg';
import { type ServerOptions, startServer } from '../../src/server/server.ts';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came and asserts on it.
  json: any;
}

export interface Ask {
  method?: string;
  headers?: Record<string, string>;
  /** Text and bytes are sent as they are, anything else as JSON. */
  body?: unknown;
  agent?: Agent;
}

function bytesOf(body: unknown): string | Uint8Array | undefined {
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) return body;
  return JSON.stringify(body);
}

export function ask(url: string, { method = 'GET', headers = {}, body, agent }: Ask = {}): Promise<Answer> {
  const bytes = bytesOf(body);
  const type: Record<string, string> = bytes === undefined ? {} : { 'content-type': 'application/json' };
  const isChunked = headers['transfer-encoding'] !== undefined;
  const length: Record<string, string | number> =
    bytes === undefined || isChunked ? {} : { 'content-length': Buffer.byteLength(bytes) };
  // Taken apart by hand: the URL class would clean up the very paths that a test is about.
  const [, host, port, path] = /^http:\/\/([^:]+):(\d+)(.*)$/.exec(url) ?? [];
  return new Promise((resolve, reject) => {
    const options = {
      host,
      port,
      path,
      method,
      headers: { ...type, ...length, ...headers },
      agent: agent ?? false,
    };
    const request = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const isJson = /^application\/json/.test(response.headers['content-type'] ?? '');
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          json: isJson ? JSON.parse(text) : undefined,
        });
      });
    });
    request.on('error', reject);
    request.end(bytes);
  });
}

export const claim = (
  url: string,
  pool: string,
  body: unknown,
  headers: Record<string, string> = {},
  agent?: Agent,
) => ask(`${url}/v1/pools/${pool}/claims`, { method: 'POST', headers, body, ...(agent ? { agent } : {}) });

/** Opens a socket, lets `use` write to it, and returns everything that came back once the server has closed it. */
export function exchange(port: number, use: (socket: Socket) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => use(socket));
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
  });
}

/** The parts of a raw answer. */
export function parseAnswer(raw: string) {
  const [head = '', body = ''] = raw.split('\r\n\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]);
  return { status, head: head.toLowerCase(), json: body === '' ? undefined : JSON.parse(body) };
}

/** A refusal of ours: the one shape, an id that matches the header, and nothing of the inside. */
export function assertRefusal(answer: Answer, status: number, code: string): void {
  assert.equal(answer.status, status, answer.text);
  assert.deepEqual(Object.keys(answer.json), ['error']);
  assert.deepEqual(Object.keys(answer.json.error), ['code', 'message', 'hint', 'request_id']);
  assert.equal(answer.json.error.code, code);
  assert.equal(answer.json.error.request_id, answer.headers['x-request-id']);
  assert.doesNotMatch(answer.text, /select |insert |claim_batch|SL0|pgmq|node_modules|at .*\.ts|postgres/i);
}

export const ADMIN_KEY = 'test-admin-key-of-the-house';
export const JWT_SECRET = 'test-secret-of-at-least-thirty-two-bytes';

export function token(claims: Record<string, unknown>, secret = JWT_SECRET): Promise<string> {
  const jwt = new SignJWT(claims).setProtectedHeader({ alg: 'HS256', typ: 'JWT' });
  if (claims.exp === undefined) jwt.setExpirationTime('1h');
  return jwt.sign(new TextEncoder().encode(secret));
}

export const bearer = (value: string) => ({ authorization: `Bearer ${value}` });

export function startTestServer(
  databases: { db1: { url: string }; db2: { url: string } },
  more: Partial<ServerOptions> = {},
) {
  process.env.SLUICE_LOG ??= 'silent';
  return startServer({
    port: 0,
    db1Url: databases.db1.url,
    db2Url: databases.db2.url,
    adminKey: ADMIN_KEY,
    jwtSecret: JWT_SECRET,
    metricsOpen: true,
    ...more,
  });
}

/** A connection for looking at the database behind the server's back. */
export async function openClient(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

/** Puts a pool on sale. `rules` are columns of engine_config. */
export async function putOnSale(
  client: pg.Client,
  pool: string,
  slots: number,
  rules: Record<string, unknown> = {},
): Promise<void> {
  const names = ['pool_id', ...Object.keys(rules)];
  const places = names.map((_, index) => `$${index + 1}`);
  await client.query(`insert into public.engine_config (${names}) values (${places})`, [
    pool,
    ...Object.values(rules),
  ]);
  await client.query(
    'insert into public.inventory_slots (pool_id) select $1 from generate_series(1, $2::int)',
    [pool, slots],
  );
}
