// Claims by a short way. node:http makes a dozen objects and callbacks of each request, which took a third of what this process
// needs for a claim. Here a claim that comes as nearly all do, whole and in one read, is read and answered by hand: one callback for
// what came, one write for the answer. With the first request of another kind a connection goes to node:http, and stays there.

import type { Socket } from 'node:net';
import type { Log } from '#core/ports.ts';
import type { HttpResponse, Router } from '#core/router.ts';
import { type Admission, TOO_MANY } from './admission.ts';
import { bodyLimit } from './body_reader.ts';
import { plainAnswer } from './plain_answer.ts';
import { type PlainRequest, readPlainRequest } from './plain_request.ts';

const NO_BODY = new Uint8Array(0);
const POST = 'POST';

export interface ShortWayTimes {
  /** For a connection on which nothing came yet. */
  readonly headersMs: number;
  /** Between two requests. */
  readonly keepAliveMs: number;
  /** How often both are looked at. */
  readonly checkMs: number;
}

export interface ShortWayPorts {
  readonly router: Router;
  readonly admission: Admission;
  readonly log: Log;
  readonly times: ShortWayTimes;
  /** Open connections are told to close with their next answer. */
  isDraining(): boolean;
  /** The id of a request: what it was given, where that is sane. */
  requestIdOf(given: unknown): string;
  /** Writes the line of a request into the log. */
  tell(method: string, path: string, requestId: string, status: number): void;
  /** From now on the connection is node:http's. */
  handOver(socket: Socket): void;
  /** Nothing came on the connection for too long. */
  onSilence(socket: Socket): void;
}

export class ShortWay {
  readonly #ports: ShortWayPorts;
  readonly #lines = new Set<Line>();
  #timer: NodeJS.Timeout | undefined;

  constructor(ports: ShortWayPorts) {
    this.#ports = ports;
  }

  /** A new connection. */
  take(socket: Socket): void {
    this.#lines.add(new Line(socket, this.#ports, this.#lines));
    this.#timer ??= setInterval(() => this.#check(), this.#ports.times.checkMs).unref();
  }

  /** Those that were answered and ask nothing now. */
  closeIdle(): void {
    for (const line of this.#lines) if (line.isIdle) line.end();
  }

  /** All but those whose answer is being made. */
  closeUnasked(): void {
    for (const line of this.#lines) if (!line.isUnderWay) line.close();
  }

  closeAll(): void {
    for (const line of this.#lines) line.close();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    for (const line of this.#lines) line.check();
  }
}

/** A connection. */
class Line {
  readonly #socket: Socket;
  readonly #ports: ShortWayPorts;
  readonly #all: Set<Line>;
  readonly #peer: string | undefined;
  #hasAsked = false;
  #isUnderWay = false;
  #hasEnded = false;
  /** What came before the answer was out. */
  #early: Buffer | undefined;
  #silentChecks = 0;

  constructor(socket: Socket, ports: ShortWayPorts, all: Set<Line>) {
    this.#socket = socket;
    this.#ports = ports;
    this.#all = all;
    this.#peer = socket.remoteAddress;
    socket.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#leave);
    // It stays: a connection that breaks closes, and without a listener its error would end the process.
    socket.on('error', ignore);
  }

  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  get isIdle(): boolean {
    return this.#hasAsked && !this.#isUnderWay;
  }

  /** An answer that is on its way still arrives. The line stays among all until it is closed: its client may never take the answer. */
  end(): void {
    this.#socket.off('data', this.#onData).off('end', this.#onEnd);
    this.#socket.destroySoon();
  }

  close(): void {
    this.#leave();
    this.#socket.destroy();
  }

  check(): void {
    if (this.#isUnderWay) return;
    const { times, onSilence } = this.#ports;
    const silentMs = this.#silentChecks++ * times.checkMs;
    if (silentMs < (this.#hasAsked ? times.keepAliveMs : times.headersMs)) return;
    if (this.#hasAsked) {
      this.close();
    } else {
      this.#leave();
      onSilence(this.#socket);
    }
  }

  readonly #leave = (): void => {
    this.#all.delete(this);
    this.#socket.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#leave);
  };

  /** It is answered, where it has asked. */
  readonly #onEnd = (): void => {
    this.#hasEnded = true;
    if (!this.#isUnderWay) this.end();
  };

  readonly #onData = (bytes: Buffer): void => {
    this.#silentChecks = 0;
    if (this.#isUnderWay) {
      // A client that pipelines, and nothing more is read from it: one request of a connection is under way.
      this.#early = this.#early === undefined ? bytes : Buffer.concat([this.#early, bytes]);
      this.#socket.pause();
      return;
    }
    // A client that does not read its answers is node:http's too.
    const asked = this.#socket.writableLength === 0 ? readPlainRequest(bytes) : undefined;
    if (asked === undefined || !this.#begin(asked)) this.#handOver(bytes);
  };

  #handOver(bytes: Buffer): void {
    this.#leave();
    this.#ports.handOver(this.#socket);
    this.#socket.emit('data', bytes);
  }

  /** False, and nothing has begun, where the request is not for the short way. */
  #begin({ url, headers, body, isKept }: PlainRequest): boolean {
    const { router, admission, requestIdOf } = this.#ports;
    const query = url.indexOf('?');
    const path = query < 0 ? url : url.slice(0, query);
    const match = router.find(POST, path);
    if (match.refusal !== undefined || match.route.isBrief !== true || body.length > bodyLimit({ match }))
      return false;
    const budget = admission.budgetOf(match);
    const isIn = budget.enter();
    const held = isIn ? body.length : 0;
    if (!budget.hold(held)) {
      budget.leave(0);
      return false;
    }
    this.#hasAsked = true;
    this.#isUnderWay = true;
    const requestId = requestIdOf(headers['x-request-id']);
    const request = {
      method: POST,
      path,
      query: url.slice(path.length + 1),
      headers,
      body: isIn ? body : NO_BODY,
      requestId,
      peer: this.#peer,
    };
    // Router.handle answers every failure itself: what fails here is the writing of an answer.
    router
      .handle(isIn ? match : TOO_MANY, request)
      .then((answer) => {
        budget.leave(held);
        this.#answer(answer, path, requestId, isKept);
      })
      .catch((cause) => {
        this.#ports.log.error('answer failed', { request_id: requestId, method: POST, path, cause });
        this.close();
      });
    return true;
  }

  #answer(answer: HttpResponse, path: string, requestId: string, isKept: boolean): void {
    this.#isUnderWay = false;
    this.#ports.tell(POST, path, requestId, answer.status);
    if (this.#socket.destroyed) return;
    const goesOn = isKept && !this.#hasEnded && !this.#ports.isDraining();
    const { text, encoding } = plainAnswer(answer, requestId, goesOn);
    this.#socket.write(text, encoding);
    if (!goesOn) {
      this.end();
      return;
    }
    const early = this.#early;
    if (early === undefined) return;
    this.#early = undefined;
    this.#onData(early);
    // Not before. Where node:http has the connection now and pauses it, its handle would be read on, past what waits in the stream: a
    // part of a body that came later was then taken for a request.
    this.#socket.resume();
  }
}

function ignore(): void {}
