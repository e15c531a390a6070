// What all HTTP doors share: a path is matched as it was sent, only its parameter is unescaped, a body is read strictly, a refusal has one shape.
// A runtime's adapter calls find(), reads at most maxBodyBytes, calls handle() and sends what comes back.

import { ERROR_KINDS, type ErrorCode, type ErrorKind, HttpError } from './errors.ts';
import { codeOf, toHttpError } from './failure.ts';
import { JsonError, parseJson } from './json.ts';
import type { Clock, Log } from './ports.ts';
import { RareLines } from './rare_lines.ts';
import type { Operator } from './roles.ts';
import { check, type FromSchema, type Schema, SchemaError } from './schema.ts';

export interface HttpRequest {
  readonly method: string;
  /** The raw path, without the query. */
  readonly path: string;
  /** The raw query, without its question mark. */
  readonly query?: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Uint8Array;
  readonly requestId: string;
  /** The address at the other end of the connection, which may be a proxy's; left out where the runtime does not tell. */
  readonly peer?: string | undefined;
  /** Whose key let the request in; at the operators' routes only. */
  readonly operator?: Operator;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  /** Makes the answer a stream: the adapter sends the head and hands over. The body is not sent then. */
  readonly follow?: Follow;
  /** Makes the answer one in parts: the adapter asks for the next when the reader has taken the last. The body is not sent then. */
  readonly parts?: AsyncIterable<string>;
}

/**
 * Called once, when the head is out. `send` is false, and sends nothing, once the reader has left or was cut because it does
 * not keep up; `closed` tells of the same. `end` ends the stream.
 */
export type Follow = (send: (text: string) => boolean, closed: AbortSignal, end: () => void) => void;

export interface Route {
  readonly method: string;
  /** At most one segment starts with a colon: that one is the parameter. */
  readonly path: string;
  /** Where its bodies may be larger than those of the public doors. */
  readonly maxBodyBytes?: number;
  /** Its answers are short texts, never streams: an adapter may read and answer its requests by a shorter way. */
  readonly isBrief?: true;
  /**
   * Throws the refusal where what the path or a header names does not exist. An adapter that streams asks it before it reads
   * a large body; `body` is then what has come so far. It answers how large the body may be, where that is less than
   * maxBodyBytes.
   */
  checkTarget?(request: HttpRequest, parameter: string): Promise<number | undefined>;
  handle(request: HttpRequest, parameter: string): HttpResponse | Promise<HttpResponse>;
}

export type Match =
  | { readonly route: Route; readonly parameter: string; readonly refusal?: undefined }
  | { readonly refusal: HttpError; readonly allow?: string };

/** A provider or call site gets an answer to its delivery within this time, whatever hangs; Twilio hangs up after 15 s. */
export const DELIVERY_MS = 10_000;
/** The largest body a door of this group takes: a claim is about 80 bytes. */
export const MAX_BODY_BYTES = 4096;
/** The shortest wait HTTP can express; overload and restarts pass in less. */
const RETRY_AFTER_SEC = 1;

const JSON_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

export function jsonResponse(status: number, value: unknown, headers = JSON_HEADERS): HttpResponse {
  return { status, headers, body: JSON.stringify(value) };
}

/** Answers that a shared cache or a browser may keep for `maxAgeSec`. */
export function cacheableHeaders(maxAgeSec: number): Readonly<Record<string, string>> {
  return { ...JSON_HEADERS, 'cache-control': `public, max-age=${maxAgeSec}` };
}

interface PreparedRefusal {
  readonly headers: Readonly<Record<string, string>>;
  readonly beforeId: string;
}

function prepare(kind: ErrorKind, hint: string): PreparedRefusal {
  const headers: Record<string, string> = { ...JSON_HEADERS };
  if (kind.retryable) headers['retry-after'] = String(RETRY_AFTER_SEC);
  // Only auth_required asks for a token: a refused signature (401 too) does not.
  if (kind.code === 'auth_required') headers['www-authenticate'] = 'Bearer';
  const body = JSON.stringify({ error: { code: kind.code, message: kind.message, hint, request_id: '' } });
  return { headers, beforeId: body.slice(0, -3) };
}

// "Sold out" is the most asked question of a drop: its answer is put together once, only the request id is added.
const PREPARED = Object.fromEntries(
  Object.values(ERROR_KINDS).map((kind) => [kind.code, prepare(kind, kind.hint)]),
) as Record<ErrorCode, PreparedRefusal>;

function refusalFrom(kind: ErrorKind, prepared: PreparedRefusal, requestId: string): HttpResponse {
  // Request ids are made of letters, digits, dot, dash and underscore, so they need no escaping.
  return { status: kind.http, headers: prepared.headers, body: `${prepared.beforeId}${requestId}"}}` };
}

/** A refusal that is an expected outcome; no error object, no stack trace. */
export function refuse(code: ErrorCode, requestId: string): HttpResponse {
  return refusalFrom(ERROR_KINDS[code], PREPARED[code], requestId);
}

export function errorResponse(error: HttpError, requestId: string): HttpResponse {
  const response = refusalFrom(error.kind, prepare(error.kind, error.hint), requestId);
  return error.headers === undefined
    ? response
    : { ...response, headers: { ...response.headers, ...error.headers } };
}

/** The answer to a request that no route takes. */
export function refusalOf(match: Extract<Match, { refusal: HttpError }>, requestId: string): HttpResponse {
  const response = errorResponse(match.refusal, requestId);
  return match.allow === undefined
    ? response
    : { ...response, headers: { ...response.headers, allow: match.allow } };
}

/** Nearly every parameter: nothing in it is escaped. */
const PLAIN_PARAMETER = /^(?!\.{1,2}$)[A-Za-z0-9._~:@-]{1,200}$/;
/** With escapes, and with what encodeURIComponent leaves bare. */
const ESCAPED_PARAMETER = /^(?:[A-Za-z0-9._~:@!'()*-]|%[0-9A-Fa-f]{2})+$/;
/** Letters, digits and -._~ are never escaped: two spellings of one name would pass a proxy's rules for the other. */
const NEEDLESS_ESCAPE = /%(?:2[DEde]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])/;
/** As public.given_pool_id has it: no control character, and a character is one code point. */
const PARAMETER = /^(?!\.{1,2}$)\P{Cc}{1,200}$/u;

/** What a refusal tells of its request. */
export type Refused = Pick<HttpRequest, 'requestId' | 'method' | 'path'>;

interface Place {
  readonly segments: readonly string[];
  readonly routes: Map<string, Route>;
  readonly allow: string;
}

export class Router {
  readonly #places: readonly Place[];
  readonly #log: Log;
  readonly #outages: RareLines;

  constructor(routes: readonly Route[], log: Log, clock: Clock = Date.now) {
    const paths = [...new Set(routes.map((route) => route.path))];
    this.#places = paths.map((path) => {
      const here = routes.filter((route) => route.path === path);
      return {
        segments: path.split('/'),
        routes: new Map(here.map((route) => [route.method, route])),
        allow: here.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', '),
      };
    });
    this.#log = log;
    this.#outages = new RareLines(clock);
  }

  find(method: string, path: string): Match {
    const segments = path.split('/');
    for (const place of this.#places) {
      const parameter = matchSegments(place.segments, segments);
      if (parameter === undefined) continue;
      const route = place.routes.get(method === 'HEAD' ? 'GET' : method);
      if (route !== undefined) return { route, parameter };
      return { refusal: new HttpError('method_not_allowed'), allow: place.allow };
    }
    return { refusal: new HttpError('not_found') };
  }

  async handle(match: Match, request: HttpRequest): Promise<HttpResponse> {
    if (match.refusal !== undefined) return refusalOf(match, request.requestId);
    try {
      const answer = await match.route.handle(request, match.parameter);
      if (request.method !== 'HEAD') return answer;
      // HEAD of a stream: answer its head and do not start the stream. Of other answers the adapter leaves out the body.
      const { follow: _, parts: __, ...head } = answer;
      return head;
    } catch (thrown) {
      return this.#refuse(toHttpError(thrown), request, match.route);
    }
  }

  /** In place of handle(), for a request whose body is not going to be read: refuses it with `error`, or as one that no route takes. */
  refuseEarly(match: Match, request: Refused, error: HttpError): HttpResponse {
    if (match.refusal !== undefined) return refusalOf(match, request.requestId);
    return this.#refuse(error, request, match.route);
  }

  #refuse(error: HttpError, request: Refused, route: Route): HttpResponse {
    this.#report(error, request, route);
    return errorResponse(error, request.requestId);
  }

  #report(error: HttpError, request: Refused, route: Route): void {
    const { code, http } = error.kind;
    // Back-pressure has to stay cheaper than the work it refuses, so it is not logged one by one.
    if (http < 500 || code === 'overloaded' || code === 'shutting_down') return;
    const fields = {
      request_id: request.requestId,
      method: request.method,
      path: request.path,
      code,
      cause: error.cause,
    };
    if (code === 'internal') {
      this.#log.error('request failed', fields);
      return;
    }
    const isOutage = http === 503;
    const alike = `${code} ${route.path} ${error.hint} ${codeOf(error.cause)}`;
    const untold = isOutage ? this.#outages.next(alike) : {};
    if (untold !== undefined) this.#log.warn('request refused', { ...fields, ...untold });
  }
}

/** The parameter (empty where the path has none), or undefined where the path does not match. */
function matchSegments(pattern: readonly string[], segments: readonly string[]): string | undefined {
  if (pattern.length !== segments.length) return undefined;
  let parameter = '';
  for (let index = 0; index < pattern.length; index++) {
    const expected = pattern[index] as string;
    const segment = segments[index] as string;
    if (!expected.startsWith(':')) {
      if (segment !== expected) return undefined;
    } else {
      const value = PLAIN_PARAMETER.test(segment) ? segment : unescapeParameter(segment);
      if (value === undefined) return undefined;
      parameter = value;
    }
  }
  return parameter;
}

/** Undefined if the segment is not valid UTF-8, or not in its one allowed spelling. */
function unescapeParameter(segment: string): string | undefined {
  if (!ESCAPED_PARAMETER.test(segment) || NEEDLESS_ESCAPE.test(segment)) return undefined;
  try {
    const value = decodeURIComponent(segment);
    return PARAMETER.test(value) ? value : undefined;
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

export const JSON_TYPE = /^application\/json(?:\s*;\s*charset="?utf-8"?)?\s*$/i;

/** Refuses (415) a body of another type, and a compressed one: a small body could inflate to a huge one. */
export function requireType({ headers }: HttpRequest, types: readonly RegExp[]): void {
  const type = headers['content-type'];
  const isTaken = typeof type === 'string' && types.some((taken) => taken.test(type));
  if (!isTaken || headers['content-encoding'] !== undefined) throw new HttpError('unsupported_media_type');
}

/** The body as the schema's type. Refuses what is not plain JSON (415), not strict JSON (400) or not the schema (422). */
export function readJson<S extends Schema>(request: HttpRequest, schema: S): FromSchema<S> {
  requireType(request, [JSON_TYPE]);
  try {
    return check(schema, parseJson(request.body));
  } catch (error) {
    if (error instanceof JsonError)
      throw new HttpError('invalid_json', `The body was refused: ${error.message}.`);
    if (error instanceof SchemaError) throw new HttpError('invalid_input', error.message);
    throw error;
  }
}
