// node:http in front of a router: bounded bodies, bounded waits, a request id on every answer. Written for many small
// requests: no listener or object per request beyond what is needed, one write per answer.

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { BodyBuffer } from '#core/body_buffer.ts';
import { type ErrorCode, HttpError } from '#core/errors.ts';
import { toHttpError } from '#core/failure.ts';
import type { Log } from '#core/ports.ts';
import {
  type Follow,
  type HttpResponse,
  MAX_BODY_BYTES,
  type Match,
  type Router,
  refusalOf,
  refuse,
} from '#core/router.ts';

const MAX_HEADER_BYTES = 16 * 1024;
/** A crowd arrives at once; with node's 511 the kernel drops the rest, and they come back a second later. */
const BACKLOG_CONNECTIONS = 4096;
/** How long we go on reading after refusing a request early, so that the refusal arrives before the reset. */
const LINGER_MS = 1_000;
/** Longer than the idle time of common load balancers (60 s), so that they close first and never meet a closed socket. */
const KEEP_ALIVE_MS = 65_000;
/** What may wait for the reader of a stream before it counts as gone: minutes of samples. */
const MAX_STREAM_BUFFER_BYTES = 64 * 1024;
/** How long stop() waits for requests that are still being sent. */
const STOP_GRACE_MS = 5_000;

export interface Timeouts {
  headersMs: number;
  /** Headers and body together. */
  requestMs: number;
  /** How often the two are looked at. */
  checkMs: number;
}
const TIMEOUTS: Timeouts = { headersMs: 10_000, requestMs: 15_000, checkMs: 1_000 };

export interface Limits {
  /** Requests under way, from their headers to their answer. Streams do not count: their doors have limits of their own. */
  maxRequests: number;
  /** What bodies may take together, of requests under way. */
  maxHeldBytes: number;
}
/** Twice what the claim door lets wait: beyond it somebody floods us, or a database is stuck. */
export const DEFAULT_MAX_REQUESTS = 20_000;
/** A hundred of the largest bodies. Their senders need no key, and thousands of them would be more memory than there is. */
const DEFAULT_MAX_HELD_BYTES = 100 * 1024 * 1024;
const LIMITS: Limits = { maxRequests: DEFAULT_MAX_REQUESTS, maxHeldBytes: DEFAULT_MAX_HELD_BYTES };
const TOO_MANY: Match = { refusal: new HttpError('too_many_requests') };
/** HTTP/1.1 demands the header (RFC 9112, 3.2). */
const NO_HOST: Match = { refusal: new HttpError('bad_request', 'Send a Host header.') };
/** Answered however many others are under way: who asks here would take a refusal for a dead process. */
const WATCHED_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
const NO_BODY = new Uint8Array(0);

export class HttpServer {
  readonly #router: Router;
  readonly #log: Log;
  readonly #server: Server;
  readonly #idPrefix = `${randomBytes(6).toString('hex')}-`;
  readonly #limits: Limits;
  #requests = 0;
  #underWay = 0;
  #heldBytes = 0;
  #draining = false;
  readonly #refusedSockets = new WeakSet<object>();
  readonly #streams = new Set<ServerResponse>();

  constructor(router: Router, log: Log, timeouts: Timeouts = TIMEOUTS, limits: Partial<Limits> = {}) {
    this.#router = router;
    this.#log = log;
    this.#limits = { ...LIMITS, ...limits };
    this.#server = createServer(
      {
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout: timeouts.headersMs,
        requestTimeout: timeouts.requestMs,
        connectionsCheckingInterval: timeouts.checkMs,
        keepAliveTimeout: KEEP_ALIVE_MS,
        // Node's own refusal has no body; ours has the shape of all others.
        requireHostHeader: false,
        noDelay: true,
      },
      (request, response) => this.#onRequest(request, response),
    );
    // Node drops headers beyond the thousandth, and one that is dropped is one that nobody checks; their bytes bound them.
    this.#server.maxHeadersCount = 0;
    // Node would answer 417 without a body. Nothing we do depends on what is expected, so it is passed over.
    this.#server.on('checkExpectation', (request, response) => this.#onRequest(request, response));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
      this.#onClientError(error, socket as Socket),
    );
  }

  get isDraining(): boolean {
    return this.#draining;
  }

  /** Port 0 takes a free one; no host means all interfaces. Resolves with the port. */
  listen(port: number, host?: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ port, host, backlog: BACKLOG_CONNECTIONS }, () => {
        this.#server.off('error', reject);
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  /**
   * Takes no new connection, ends streams, tells open connections to close with their next answer, and resolves when the
   * last one is closed.
   * Connections that are still sending, or never sent anything, get a grace period.
   */
  close(): Promise<void> {
    this.#draining = true;
    for (const stream of this.#streams) stream.end();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#server.closeAllConnections(), STOP_GRACE_MS);
      this.#server.close((error) => {
        clearTimeout(timer);
        if (error) reject(error);
        else resolve();
      });
    });
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { headers, url = '' } = request;
    const given = headers['x-request-id'];
    const id = typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : this.#nextId();
    const query = url.indexOf('?');
    const path = query < 0 ? url : url.slice(0, query);
    const isNamed = headers.host !== undefined || request.httpVersion === '1.0';
    const match = isNamed ? this.#router.find(request.method ?? '', path) : NO_HOST;

    const length = headers['content-length'];
    if (this.#underWay >= this.#limits.maxRequests && !WATCHED_PATHS.has(path)) {
      // What is left of its body is read and dropped by node:http, so the connection can be kept.
      request.resume();
      this.#underWay++;
      this.#handle(request, response, TOO_MANY, path, id, NO_BODY);
    } else if (length === undefined && headers['transfer-encoding'] === undefined) {
      this.#underWay++;
      this.#handle(request, response, match, path, id, NO_BODY);
    } else if (length !== undefined && Number(length) > bodyLimit(match)) {
      request.resume();
      this.#refuseEarly(request, response, match, path, id, 'too_large');
    } else {
      this.#readBody(request, response, match, path, id);
    }
  }

  #nextId(): string {
    return this.#idPrefix + (this.#requests++).toString(36);
  }

  #readBody(
    request: IncomingMessage,
    response: ServerResponse,
    match: Match,
    path: string,
    id: string,
  ): void {
    const body = new BodyBuffer(bodyLimit(match));
    let refusal: ErrorCode | undefined;
    let isHandled = false;
    this.#underWay++;
    request.on('data', (chunk: Buffer) => {
      if (refusal !== undefined) return;
      const isHeld = this.#heldBytes + chunk.length <= this.#limits.maxHeldBytes;
      if (isHeld && body.add(chunk)) {
        this.#heldBytes += chunk.length;
        return;
      }
      refusal = isHeld ? 'too_large' : 'too_many_requests';
      this.#refuseEarly(request, response, match, path, id, refusal);
    });
    request.on('end', () => {
      if (refusal !== undefined) return;
      isHandled = true;
      this.#handle(request, response, match, path, id, body.bytes());
    });
    // Refused, or its sender left: nobody else gives back what it holds.
    request.on('close', () => {
      if (!isHandled) this.#leave(body.bytes());
    });
  }

  /** Once for each request that was counted as under way. */
  #leave(body: Uint8Array): void {
    this.#underWay--;
    this.#heldBytes -= body.length;
  }

  #handle(
    request: IncomingMessage,
    response: ServerResponse,
    match: Match,
    path: string,
    requestId: string,
    body: Uint8Array,
  ): void {
    const { method = '', headers, url = '' } = request;
    const asked = {
      method,
      path,
      query: url.slice(path.length + 1),
      headers,
      body,
      requestId,
      peer: request.socket.remoteAddress,
    };
    // Router.handle answers every failure itself; what is left here is a failure to send.
    this.#router.handle(match, asked).then(
      (answer) => {
        this.#leave(body);
        this.#send(response, answer, method, path, requestId);
      },
      (error) => {
        this.#leave(body);
        this.#log.error('answer failed', { request_id: requestId, method, path, cause: error });
        response.destroy();
      },
    );
  }

  #send(
    response: ServerResponse,
    answer: HttpResponse,
    method: string,
    path: string,
    requestId: string,
  ): void {
    if (this.#log.debugEnabled)
      this.#log.debug('request', { request_id: requestId, method, path, status: answer.status });
    if (this.#draining) response.shouldKeepAlive = false;
    if (answer.follow !== undefined) {
      this.#stream(response, answer, answer.follow, requestId);
      return;
    }
    this.#writeHead(response, answer, requestId);
    response.end(answer.body);
  }

  #stream(response: ServerResponse, answer: HttpResponse, follow: Follow, requestId: string): void {
    // It ends when the reader or the server does; nothing else will be asked on this connection.
    response.shouldKeepAlive = false;
    response.writeHead(answer.status, [...flatHeaders(answer.headers), 'x-request-id', requestId]);
    response.flushHeaders();
    // Its own, not the response's: one that waits for its turn behind an earlier answer has none yet, and is told nothing.
    const { socket } = response.req;
    if (this.#draining || response.destroyed || socket.destroyed) {
      response.end();
      return;
    }
    this.#streams.add(response);
    const closing = new AbortController();
    const onClose = () => {
      socket.off('close', onClose);
      this.#streams.delete(response);
      closing.abort();
    };
    response.on('close', onClose);
    socket.on('close', onClose);
    const send = (text: string): boolean => {
      if (response.destroyed || response.writableEnded || socket.destroyed) return false;
      response.write(text);
      if (response.writableLength <= MAX_STREAM_BUFFER_BYTES) return true;
      response.destroy();
      return false;
    };
    follow(send, closing.signal, () => response.end());
  }

  #writeHead(response: ServerResponse, answer: HttpResponse, requestId: string): void {
    if (answer.status === 204) {
      response.writeHead(204, [...flatHeaders(answer.headers), 'x-request-id', requestId]);
      return;
    }
    const length = String(Buffer.byteLength(answer.body));
    response.writeHead(answer.status, [
      ...flatHeaders(answer.headers),
      'x-request-id',
      requestId,
      'content-length',
      length,
    ]);
  }

  /** Answers a request whose body is not going to be read: with `code`, or as one to a path that takes none. */
  #refuseEarly(
    request: IncomingMessage,
    response: ServerResponse,
    match: Match,
    path: string,
    requestId: string,
    code: ErrorCode,
  ): void {
    const method = request.method ?? '';
    const refusal = match.refusal === undefined ? refuse(code, requestId) : refusalOf(match, requestId);
    if (this.#log.debugEnabled)
      this.#log.debug('request', { request_id: requestId, method, path, status: refusal.status });
    response.shouldKeepAlive = false;
    this.#writeHead(response, refusal, requestId);
    response.write(refusal.body);
    // Closing now, with unread bytes in the socket, would reset the connection and could take the answer with it.
    const timer = setTimeout(() => response.end(), LINGER_MS);
    request.on('end', () => response.end());
    response.on('close', () => clearTimeout(timer));
  }

  /** What node:http could not make a request of: broken syntax, headers too large, or too slow. */
  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    if (this.#refusedSockets.has(socket)) return;
    this.#refusedSockets.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const earlier = unanswered(socket);
    if (earlier !== undefined) {
      // It is whole and may have taken effect: it gets its answer, as the last one on this connection.
      if (earlier.headersSent) socket.destroySoon();
      else earlier.shouldKeepAlive = false;
      return;
    }
    const requestId = this.#nextId();
    const code =
      error.code === 'HPE_HEADER_OVERFLOW'
        ? 'headers_too_large'
        : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
          ? 'timeout'
          : 'bad_request';
    const { status, headers, body } = refuse(code, requestId);
    const lines = Object.entries({
      ...headers,
      'x-request-id': requestId,
      'content-length': Buffer.byteLength(body),
      connection: 'close',
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${code}\r\n${lines.join('')}\r\n${body}`);
    if (this.#log.debugEnabled)
      this.#log.debug('not a request', { request_id: requestId, status, cause: toHttpError(error) });
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.on('close', () => clearTimeout(timer));
  }
}

/** What the route takes, or what the public doors take. */
function bodyLimit(match: Match): number {
  if (match.refusal !== undefined) return MAX_BODY_BYTES;
  return match.route.maxBodyBytes ?? MAX_BODY_BYTES;
}

// node:http takes headers as a flat list half again as fast as an object (46k against 31k answers/s), and the doors answer
// with few distinct header objects.
const flattened = new WeakMap<object, string[]>();
function flatHeaders(headers: HttpResponse['headers']): string[] {
  let flat = flattened.get(headers);
  if (flat === undefined) {
    flat = Object.entries(headers).flat();
    flattened.set(headers, flat);
  }
  return flat;
}

/** An earlier, complete request on this connection that still waits for its answer: another answer must not overtake it. */
function unanswered(socket: Socket): ServerResponse | undefined {
  const { _httpMessage: current } = socket as Socket & { _httpMessage?: ServerResponse | null };
  return current != null && (current.headersSent || current.req.complete) ? current : undefined;
}
