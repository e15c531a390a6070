// node:http in front of a router: bounded bodies, bounded waits, a request id on every answer. Claims go by a shorter way
// (short_way.ts) while they come as nearly all do.

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { HttpError } from '#core/errors.ts';
import { toHttpError } from '#core/failure.ts';
import type { Log } from '#core/ports.ts';
import { type HttpResponse, type Match, type Router, refuse } from '#core/router.ts';
import { Admission, TOO_MANY } from './admission.ts';
import { BodyReader, bodyLimit } from './body_reader.ts';
import { type Exchange, writeHead } from './exchange.ts';
import { Pipelines } from './pipelines.ts';
import { KEEP_ALIVE_MS } from './plain_answer.ts';
import { ShortWay } from './short_way.ts';
import { Streams } from './streams.ts';

const MAX_HEADER_BYTES = 16 * 1024;
/** A crowd arrives at once; with node's 511 the kernel drops the rest, and they come back a second later. */
const BACKLOG_CONNECTIONS = 4096;
/** How long we go on reading after refusing a request early, so that the refusal arrives before the reset. */
const LINGER_MS = 1_000;
export interface Timeouts {
  headersMs: number;
  /** Headers and body together. */
  requestMs: number;
  /** How often all of these are looked at. */
  checkMs: number;
  /** For how long a body may come more slowly than the least rate. */
  slowMs: number;
  /** How long close() waits for requests that are still being sent. */
  graceMs: number;
  /** How long it waits for answers that are being made. */
  answerMs: number;
}
const TIMEOUTS: Timeouts = {
  ...{ headersMs: 10_000, requestMs: 15_000, checkMs: 1_000, slowMs: 5_000 },
  // A provider waits ten seconds for an inline effect; no other request may take as long.
  ...{ graceMs: 5_000, answerMs: 12_000 },
};

const TOO_LARGE = new HttpError('too_large');
/** HTTP/1.1 demands the header, once (RFC 9112, 3.2): with two of them a proxy may have gone by the other one. */
const NO_HOST: Match = { refusal: new HttpError('bad_request', 'Send one Host header.') };
const HOST = 'host';
/** What node:http says of a connection on which nothing comes. */
const SILENCE = Object.assign(new Error('nothing came'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
const NO_BODY = new Uint8Array(0);

export class HttpServer {
  readonly #router: Router;
  readonly #log: Log;
  readonly #server: Server;
  readonly #idPrefix = `${randomBytes(6).toString('hex')}-`;
  readonly #admission: Admission;
  readonly #bodies: BodyReader;
  readonly #pipelines = new Pipelines();
  readonly #streams: Streams;
  readonly #shortWay: ShortWay;
  /** Connections that node:http has. */
  readonly #handedOver = new Set<Socket>();
  readonly #timeouts: Timeouts;
  #requests = 0;
  #draining = false;
  readonly #refusedSockets = new WeakSet<object>();

  constructor(
    router: Router,
    log: Log,
    given: Partial<Timeouts> = {},
    admission = new Admission(),
    streams = new Streams(),
  ) {
    this.#router = router;
    this.#log = log;
    this.#admission = admission;
    this.#streams = streams;
    const timeouts = { ...TIMEOUTS, ...given };
    this.#timeouts = timeouts;
    const listener = {
      onBody: (exchange: Exchange, body: Uint8Array) => this.#handle(exchange, body),
      onRefused: (exchange: Exchange, error: HttpError) => this.#refuseEarly(exchange, error),
    };
    this.#bodies = new BodyReader(listener, timeouts, admission.largeBodies);
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
    // By default Node drops headers beyond the thousandth, and a dropped header escapes our checks. Their bytes bound them.
    this.#server.maxHeadersCount = 0;
    // Node would answer 417 without a body. Nothing we do depends on what is expected, so it is passed over.
    this.#server.on('checkExpectation', (request, response) => this.#onRequest(request, response));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
      this.#onClientError(error, socket as Socket),
    );
    this.#shortWay = this.#layShortWay(timeouts);
  }

  /**
   * Connections begin there, and node:http's own listener takes those that leave it. A node:http that never listens, with
   * connections handed to it, would look after none of its timeouts and close none of its idle connections.
   */
  #layShortWay({ headersMs, checkMs }: Timeouts): ShortWay {
    const server = this.#server;
    const [toNode] = server.listeners('connection');
    if (toNode === undefined) throw new Error('node:http takes no connections');
    const way = new ShortWay({
      router: this.#router,
      admission: this.#admission,
      log: this.#log,
      times: { headersMs, keepAliveMs: KEEP_ALIVE_MS, checkMs },
      isDraining: () => this.#draining,
      requestIdOf: (given) => this.#requestIdOf(given),
      tell: (...answered) => this.#tell(...answered),
      handOver: (socket) => {
        this.#handedOver.add(socket);
        socket.once('close', () => this.#handedOver.delete(socket));
        toNode.call(server, socket);
      },
      onSilence: (socket) => this.#onClientError(SILENCE, socket),
    });
    server.removeAllListeners('connection');
    server.on('connection', (socket) => way.take(socket));
    return way;
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
   * last one is closed. Connections that are still sending, or never sent anything, get a grace period; a request that is whole
   * is answered first.
   * Idle connections are closed at once, or after `restMs`: then a client whose next request is on its way has its answer.
   */
  close(restMs = 0): Promise<void> {
    this.#draining = true;
    this.#streams.end();
    return new Promise((resolve, reject) => {
      const { graceMs, answerMs } = this.#timeouts;
      const closing = [
        setTimeout(() => this.#closeUnasked(), restMs + graceMs),
        setTimeout(() => {
          this.#server.closeAllConnections();
          this.#shortWay.closeAll();
        }, restMs + answerMs),
      ];
      const closeIdle = (): void => {
        this.#server.closeIdleConnections();
        this.#shortWay.closeIdle();
      };
      const resting = restMs > 0 && setTimeout(closeIdle, restMs);
      const onClosed = (error?: Error): void => {
        for (const timer of closing) clearTimeout(timer);
        if (resting) clearTimeout(resting);
        this.#bodies.stop();
        this.#shortWay.stop();
        if (error) reject(error);
        else resolve();
      };
      // http's own close() also closes its idle connections.
      if (restMs > 0) NetServer.prototype.close.call(this.#server, onClosed);
      else {
        this.#server.close(onClosed);
        this.#shortWay.closeIdle();
      }
    });
  }

  /** The connections on which no answer is being made. */
  #closeUnasked(): void {
    for (const socket of this.#handedOver) if (unanswered(socket) === undefined) socket.destroy();
    this.#shortWay.closeUnasked();
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    // Without the socket it is behind an earlier request of its connection.
    if (response.socket === null)
      this.#pipelines.wait(request, response, () => this.#begin(request, response));
    else this.#begin(request, response);
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    const { headers, url = '' } = request;
    const requestId = this.#requestIdOf(headers['x-request-id']);
    const query = url.indexOf('?');
    const path = query < 0 ? url : url.slice(0, query);
    const hosts = countHosts(request.rawHeaders);
    const isNamed = hosts === 1 || (hosts === 0 && request.httpVersion === '1.0');
    const match = isNamed ? this.#router.find(request.method ?? '', path) : NO_HOST;
    const budget = this.#admission.budgetOf(match);
    const exchange: Exchange = { request, response, match, path, requestId, budget };

    const length = headers['content-length'];
    if (!budget.enter()) {
      // node:http reads and drops the rest of its body, so the connection can be kept.
      request.resume();
      this.#handle({ ...exchange, match: TOO_MANY }, NO_BODY);
    } else if (length === undefined && headers['transfer-encoding'] === undefined) {
      this.#handle(exchange, NO_BODY);
    } else if (length !== undefined && Number(length) > bodyLimit(exchange)) {
      budget.leave(0);
      request.resume();
      this.#refuseEarly(exchange, TOO_LARGE);
    } else {
      this.#bodies.read(exchange);
    }
  }

  #requestIdOf(given: unknown): string {
    return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : this.#nextId();
  }

  #nextId(): string {
    return this.#idPrefix + (this.#requests++).toString(36);
  }

  /** Answers a request that has entered its budget, with the bytes of its body. */
  #handle(exchange: Exchange, body: Uint8Array): void {
    const { request, response, match, path, requestId, budget } = exchange;
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
    // Router.handle answers every failure itself: what fails here is the writing of an answer.
    this.#router
      .handle(match, asked)
      .then((answer) => {
        budget.leave(body.length);
        this.#send(exchange, answer);
      })
      .catch((cause) => {
        this.#log.error('answer failed', { request_id: requestId, method, path, cause });
        response.destroy();
      });
  }

  #send(exchange: Exchange, answer: HttpResponse): void {
    const { request, response, path, requestId } = exchange;
    this.#tell(request.method, path, requestId, answer.status);
    if (this.#draining) response.shouldKeepAlive = false;
    if (answer.follow !== undefined) {
      this.#streams.begin(exchange, answer);
      return;
    }
    if (answer.parts !== undefined) {
      this.#streams.send(exchange, answer, answer.parts).catch((cause) => {
        this.#log.warn('an answer broke off', { request_id: requestId, path, cause });
      });
      return;
    }
    writeHead(response, answer, requestId);
    response.end(answer.body);
  }

  #tell(method: string | undefined, path: string, requestId: string, status: number): void {
    if (this.#log.debugEnabled) this.#log.debug('request', { request_id: requestId, method, path, status });
  }

  /** Answers a request whose body is not going to be read: with `error`, or as one to a path that takes none. */
  #refuseEarly(exchange: Exchange, error: HttpError): void {
    const { request, response, match, path, requestId } = exchange;
    const { method = '' } = request;
    const refusal = this.#router.refuseEarly(match, { method, path, requestId }, error);
    this.#tell(method, path, requestId, refusal.status);
    response.shouldKeepAlive = false;
    writeHead(response, refusal, requestId);
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
      // It may have taken effect: it gets its answer, which no other may overtake, as the last one on this connection.
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

/** node:http keeps the first of several and tells of no other. */
function countHosts(rawHeaders: readonly string[]): number {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts++;
  }
  return hosts;
}

/** A complete request of this connection that still waits for its answer. */
function unanswered(socket: Socket): ServerResponse | undefined {
  const { _httpMessage: current } = socket as Socket & { _httpMessage?: ServerResponse | null };
  return current != null && (current.headersSent || current.req.complete) ? current : undefined;
}
