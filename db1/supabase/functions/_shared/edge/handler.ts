// A Router behind a Web `Request`: what src/server/http.ts is for Node.

import { BodyBuffer } from '../body_buffer.ts';
import type { Log } from '../ports.ts';
import { type HttpResponse, MAX_BODY_BYTES, type Match, type Route, Router, refuse } from '../router.ts';

/** A route may take larger bodies than the public doors do. */
export type EdgeRoute = Route & {
  readonly maxBodyBytes?: number;
  /** Pages of any origin may call its function, without cookies: the platform leaves it to the function to tell browsers so. */
  readonly isForPages?: true;
};

const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
const NO_BODY = new Uint8Array(0);
/** On refusals too, of whatever path: a page could not read them otherwise. */
const FOR_PAGES = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'retry-after, x-request-id',
};

export function createHandler(
  routes: readonly EdgeRoute[],
  log: Log,
): (request: Request) => Promise<Response> {
  const router = new Router(routes, log);
  const isForPages = routes.some((route) => route.isForPages);
  const methods = [...new Set(routes.map(({ method }) => method))].join(', ');
  return async (request) => {
    if (isForPages && isPreflight(request)) return answerPreflight(request, methods);
    const given = request.headers.get('x-request-id') ?? '';
    const requestId = SANE_REQUEST_ID.test(given) ? given : crypto.randomUUID();
    return toResponse(await answer(router, request, requestId, log), requestId, isForPages);
  };
}

/** A browser asks before it sends a page's request to another origin. */
function isPreflight({ method, headers }: Request): boolean {
  return method === 'OPTIONS' && headers.has('access-control-request-method');
}

function answerPreflight({ headers }: Request, methods: string): Response {
  const wanted = headers.get('access-control-request-headers');
  return new Response(null, {
    status: 204,
    headers: {
      ...FOR_PAGES,
      'access-control-allow-methods': methods,
      ...(wanted !== null && { 'access-control-allow-headers': wanted }),
    },
  });
}

async function answer(router: Router, request: Request, requestId: string, log: Log): Promise<HttpResponse> {
  const { method } = request;
  const { path, query } = splitUrl(request.url);
  const match = router.find(method, path);
  let body: Uint8Array | undefined;
  try {
    body = await readBody(request, bodyLimit(match));
  } catch (error) {
    log.info('the body broke off', { request_id: requestId, method, path, cause: error });
    return refuse('bad_request', requestId);
  }
  if (body === undefined) return refuse('too_large', requestId);
  const headers = Object.fromEntries(request.headers);
  const asked = { method, path, query, headers, body, requestId };
  return router.handle(match, asked);
}

/** As it was sent: `new URL` would resolve dots and their escapes, and make one path of several spellings. */
function splitUrl(url: string): { path: string; query: string } {
  const [address = ''] = url.split('#', 1);
  const start = address.indexOf('/', address.indexOf('://') + 3);
  const question = address.indexOf('?');
  const end = question < 0 ? address.length : question;
  return { path: start < 0 ? '/' : address.slice(start, end), query: address.slice(end + 1) };
}

/** A request that is refused anyway has no body worth reading. */
function bodyLimit(match: Match): number {
  if (match.refusal !== undefined) return Number.POSITIVE_INFINITY;
  const { maxBodyBytes }: EdgeRoute = match.route;
  return maxBodyBytes ?? MAX_BODY_BYTES;
}

/** Undefined where there is more than the limit; counted while it streams in, whatever its length was said to be. */
async function readBody(request: Request, maxBytes: number): Promise<Uint8Array | undefined> {
  if (request.body === null) return NO_BODY;
  const reader = request.body.getReader();
  if (maxBytes === Number.POSITIVE_INFINITY) {
    await reader.cancel();
    return NO_BODY;
  }
  const body = new BodyBuffer(maxBytes);
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    if (body.add(next.value)) continue;
    await reader.cancel();
    return undefined;
  }
  return body.bytes();
}

function toResponse(answer: HttpResponse, requestId: string, isForPages: boolean): Response {
  // A function is billed by its running time, and ended by it: it cannot serve a stream.
  const { status, headers, body } = answer.follow === undefined ? answer : refuse('internal', requestId);
  // A copy of bytes: they may lie in memory that is shared, which a Response does not take.
  const sent = typeof body === 'string' ? body : new Uint8Array(body);
  return new Response(sent, {
    status,
    headers: { ...headers, ...(isForPages && FOR_PAGES), 'x-request-id': requestId },
  });
}
