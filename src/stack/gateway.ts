import { randomUUID } from 'node:crypto';
import {
  Agent,
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from 'node:http';
import { pipeline } from 'node:stream';
import { StackError } from '../failure.ts';
import { LOOPBACK } from './ports.ts';

/** Where the gateway sends what. A part that is not (yet) there is answered with 503. */
export type Upstreams = {
  restPort?: number;
  /** The functions by name; one that has ended stays on the list without a port. */
  functionPorts?: ReadonlyMap<string, number | undefined>;
};

export type Gateway = {
  port: number;
  url: string;
  /** Filled in as the parts behind the gateway come up. */
  upstreams: Upstreams;
  /** Stops listening, lets running requests end within the grace, then cuts them off. */
  stop(): Promise<void>;
};

export type GatewayOptions = {
  port: number;
  /** For the error when the port is taken: who wants it, and which variable moves it. */
  name: string;
  variable: string;
};

const REST_PREFIX = '/rest/v1';
const FUNCTIONS_PREFIX = '/functions/v1';
const RETRY_AFTER_SEC = 1;
const STOP_GRACE_MS = 3_000;
/** Of an answer that is read before it is passed on; an error of PostgREST has a few hundred bytes. */
const MAX_ERROR_BYTES = 64 * 1024;
// Shorter than PostgREST keeps an idle connection (30 s): we let go first, and no request meets a closed door.
const IDLE_UPSTREAM_MS = 10_000;
// Belong to one connection, not to the message (RFC 9110, 7.6.1); `expect` was answered by this server already.
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
];

type Target = { port: number; path: string; isRest: boolean };

const REFUSALS = {
  no_api_key: [401, 'No API key found in the request', 'Send an `apikey` header; .sluice/env has the keys'],
  not_found: [404, 'There is nothing at this path', `Use ${REST_PREFIX}/… or ${FUNCTIONS_PREFIX}/…`],
  functions_not_running: [
    503,
    'This function is not running here',
    'It is starting, it has ended, or Deno is not installed: the start says which',
  ],
  rest_not_running: [
    503,
    'PostgREST is not running here',
    'It is starting, or not installed: see POSTGREST_BIN',
  ],
  upstream_unavailable: [503, 'The service behind this path does not answer', 'Try again shortly'],
} satisfies Record<string, [status: number, message: string, hint: string]>;

type Refusal = keyof typeof REFUSALS;

/** The paths of a Supabase project's API on one port, in front of PostgREST and the functions. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const upstreams: Upstreams = {};
  const agent = new Agent({ keepAlive: true, timeout: IDLE_UPSTREAM_MS });
  const server = createServer((req, res) => route(req, res, upstreams, agent));
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenFailure(error, options)));
    server.listen(options.port, LOOPBACK, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : options.port;
  return {
    port,
    url: `http://${LOOPBACK}:${port}`,
    upstreams,
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const impatience = setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS);
      server.closeIdleConnections();
      await closed;
      clearTimeout(impatience);
      agent.destroy();
    },
  };
}

function listenFailure(error: NodeJS.ErrnoException, { port, name, variable }: GatewayOptions): Error {
  if (error.code !== 'EADDRINUSE') return error;
  return portTaken(port, name, variable);
}

export function portTaken(port: number, name: string, variable: string): StackError {
  return new StackError(
    `port ${port}, wanted by ${name}, is taken by another program`,
    `choose another with ${variable}=<port>, or stop that program (\`lsof -i :${port}\` names it)`,
  );
}

function route(req: IncomingMessage, res: ServerResponse, upstreams: Upstreams, agent: Agent): void {
  const target = findTarget(req, upstreams);
  if (typeof target === 'string') refuse(res, target);
  else forward(req, res, target, agent);
}

function findTarget(req: IncomingMessage, { restPort, functionPorts }: Upstreams): Target | Refusal {
  const { url = '/', headers } = req;
  if (isUnder(url, FUNCTIONS_PREFIX)) return findFunction(url.slice(FUNCTIONS_PREFIX.length), functionPorts);
  if (!isUnder(url, REST_PREFIX)) return 'not_found';
  // A browser asks for permission (OPTIONS) before it sends any key; PostgREST answers that itself.
  if (req.method !== 'OPTIONS' && !headers.authorization && !headers.apikey) return 'no_api_key';
  if (restPort === undefined) return 'rest_not_running';
  if (!headers.authorization && headers.apikey) headers.authorization = `Bearer ${headers.apikey}`;
  return { port: restPort, path: url.slice(REST_PREFIX.length), isRest: true };
}

/** The path goes on as the platform hands it to a function: with the function's name in front. */
function findFunction(path: string, ports: Upstreams['functionPorts']): Target | Refusal {
  if (ports === undefined) return 'functions_not_running';
  const name = /^\/([^/?]*)/.exec(path)?.[1] ?? '';
  if (!ports.has(name)) return 'not_found';
  const port = ports.get(name);
  return port === undefined ? 'functions_not_running' : { port, path, isRest: false };
}

function isUnder(url: string, prefix: string): boolean {
  return url.startsWith(prefix) && ['', '/', '?'].includes(url.charAt(prefix.length));
}

function forward(req: IncomingMessage, res: ServerResponse, target: Target, agent: Agent): void {
  const { port, path, isRest } = target;
  const upstream = request({
    host: LOOPBACK,
    port,
    method: req.method,
    path: path.startsWith('/') ? path : `/${path}`,
    headers: endToEnd(req.headers),
    agent,
  });
  // Without it Node would send the body of a chunked DELETE bare, and the bytes would pass for the next request.
  if (req.headers['transfer-encoding']) upstream.setHeader('transfer-encoding', 'chunked');
  upstream.on('response', (answer) => {
    if (isRest && answer.statusCode === 400) void passOnError(answer, res);
    else passOn(answer, res);
  });
  upstream.on('error', () => {
    if (res.headersSent || res.destroyed) res.destroy();
    else refuse(res, 'upstream_unavailable');
  });
  // The caller went away before the answer: stop the work behind it too.
  res.on('close', () => {
    if (!res.writableFinished) upstream.destroy();
  });
  req.pipe(upstream);
}

function passOn(answer: IncomingMessage, res: ServerResponse): void {
  res.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers));
  // A broken stream ends in this callback; both ends are closed by then, so the error has no reader.
  pipeline(answer, res, () => undefined);
}

/**
 * While its database crashes PostgREST answers 400 with an error whose code is empty. A client would take that for a refusal
 * of its request, so it becomes what it is: try again.
 */
async function passOnError(answer: IncomingMessage, res: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of answer) {
      bytes += chunk.length;
      if (bytes > MAX_ERROR_BYTES) throw new Error('an error of PostgREST is larger than any it has');
      chunks.push(chunk);
    }
  } catch {
    // Cut in the middle, as a crash does, or not an error at all.
    if (!res.destroyed) refuse(res, 'upstream_unavailable');
    return;
  }
  const body = Buffer.concat(chunks);
  if (hasEmptyCode(body)) refuse(res, 'upstream_unavailable');
  else res.writeHead(400, endToEnd(answer.headers)).end(body);
}

function hasEmptyCode(body: Buffer): boolean {
  try {
    return JSON.parse(body.toString())?.code === '';
  } catch {
    return false;
  }
}

function endToEnd(headers: NodeJS.Dict<string | string[]>): OutgoingHttpHeaders {
  const kept: OutgoingHttpHeaders = { ...headers };
  for (const name of HOP_BY_HOP) delete kept[name];
  return kept;
}

function refuse(res: ServerResponse, code: Refusal): void {
  const [status, message, hint] = REFUSALS[code];
  const requestId = randomUUID();
  res.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': requestId,
    ...(status === 503 && { 'retry-after': String(RETRY_AFTER_SEC) }),
  });
  res.end(JSON.stringify({ error: { code, message, hint, request_id: requestId } }));
}
