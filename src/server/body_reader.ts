// Reads the bodies of requests: within the budget of their group, no further than needed to know that what they are for
// exists, and not from senders that hardly send.

import { BodyBuffer } from '#core/body_buffer.ts';
import { HttpError } from '#core/errors.ts';
import { toHttpError } from '#core/failure.ts';
import { MAX_BODY_BYTES } from '#core/router.ts';
import type { Exchange } from './exchange.ts';
import { LARGE_BYTES, type LargeBodies } from './large_bodies.ts';

/** Of a body, before the route has said that its target exists. Bodies of that size are cheap, and most are smaller. */
const UNCHECKED_BYTES = 4096;
/** A telephone on a bad line sends ten times as much. Slower is a sender that only wants to keep its place. */
const MIN_BYTES_PER_SEC = 1024;
/**
 * A sender that has a turn keeps other large bodies waiting, so it has to send its body within about this time. The others wait longer
 * than that (PATIENCE_MS): a few senders without a secret cannot keep the room for themselves.
 */
const TURN_SEC = 2;
/** 4 Mbit/s, of which an honest sender on a slow link is capable: a body over 1 MB has longer than TURN_SEC. */
const TURN_MAX_BYTES_PER_SEC = 512 * 1024;
/** From its beginning nothing is due for so long: a connection over an ocean needs some round trips before it is fast. */
const TURN_LATE_MS = 1_000;
const MS_PER_SEC = 1_000;

// Made once: a refusal has to stay cheaper than the work it refuses.
const TOO_SLOW = new HttpError('timeout');
const TOO_LARGE = new HttpError('too_large');
const TOO_MANY = new HttpError('too_many_requests');

export interface BodyTimes {
  /** How often senders are looked at. */
  readonly checkMs: number;
  /** For how long a sender may be slower than the least rate. */
  readonly slowMs: number;
}

export interface BodyListener {
  /** The body is whole. Its request and bytes still count: the listener gives them back. */
  onBody(exchange: Exchange, body: Uint8Array): void;
  /** The body is not going to be read; it no longer counts. */
  onRefused(exchange: Exchange, error: HttpError): void;
}

export class BodyReader {
  readonly #listener: BodyListener;
  readonly #times: BodyTimes;
  readonly #largeBodies: LargeBodies;
  readonly #reading = new Set<Reading>();
  #timer: NodeJS.Timeout | undefined;

  constructor(listener: BodyListener, times: BodyTimes, largeBodies: LargeBodies) {
    this.#listener = listener;
    this.#times = times;
    this.#largeBodies = largeBodies;
  }

  /** The request has entered its budget. */
  read(exchange: Exchange): void {
    this.#reading.add(new Reading(exchange, this.#listener, this.#reading, this.#largeBodies));
    this.#timer ??= setInterval(() => this.#check(), this.#times.checkMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    for (const one of this.#reading) one.check(this.#times);
  }
}

class Reading {
  readonly #exchange: Exchange;
  readonly #listener: BodyListener;
  readonly #all: Set<Reading>;
  readonly #largeBodies: LargeBodies;
  readonly #body: BodyBuffer;
  #bytes = 0;
  #bytesAtCheck = 0;
  #slowChecks = 0;
  #target: 'unchecked' | 'exists' = 'exists';
  /** What is read before the next question: whether its target exists, or whether it is its turn. */
  #mayHold = Number.POSITIVE_INFINITY;
  /** It waits for our answer to that question, so it is not slow. */
  #isPaused = false;
  #leaveTurn: () => void = () => undefined;
  #leastTurnBytesPerSec = 0;
  #turnMs = 0;
  #isOver = false;

  constructor(exchange: Exchange, listener: BodyListener, all: Set<Reading>, largeBodies: LargeBodies) {
    this.#exchange = exchange;
    this.#listener = listener;
    this.#all = all;
    this.#largeBodies = largeBodies;
    const { request, match } = exchange;
    this.#body = new BodyBuffer(bodyLimit(exchange));
    if (match.refusal === undefined && match.route.checkTarget !== undefined) {
      this.#target = 'unchecked';
      this.#mayHold = UNCHECKED_BYTES;
    }
    request.on('data', (chunk: Buffer) => this.#add(chunk));
    request.on('end', () => {
      if (this.#leave()) listener.onBody(exchange, this.#body.bytes());
    });
    // Where the sender left in the middle.
    request.on('close', () => {
      if (this.#leave()) exchange.budget.leave(this.#bytes);
    });
  }

  /** Refuses a sender that has been slower than the least rate for `slowMs`, or too slow for its turn. */
  check({ checkMs, slowMs }: BodyTimes): void {
    const cameBytes = this.#bytes - this.#bytesAtCheck;
    this.#bytesAtCheck = this.#bytes;
    const isSlow = !this.#isPaused && cameBytes < (MIN_BYTES_PER_SEC * checkMs) / MS_PER_SEC;
    this.#slowChecks = isSlow ? this.#slowChecks + 1 : 0;
    const dueBytes = (this.#leastTurnBytesPerSec * (this.#turnMs - TURN_LATE_MS)) / MS_PER_SEC;
    // Afterwards: the first check may come right after the turn has begun.
    this.#turnMs += checkMs;
    if (this.#slowChecks * checkMs >= slowMs || this.#bytes < dueBytes) this.refuse(TOO_SLOW);
  }

  refuse(error: HttpError): void {
    if (!this.#leave()) return;
    this.#exchange.budget.leave(this.#bytes);
    // Its answer lingers until the sender has read it.
    this.#leaveTurn();
    this.#listener.onRefused(this.#exchange, error);
    // What still comes is dropped.
    this.#exchange.request.resume();
  }

  #add(chunk: Buffer): void {
    if (this.#isOver) return;
    if (!this.#exchange.budget.hold(chunk.length)) {
      this.refuse(TOO_MANY);
      return;
    }
    this.#bytes += chunk.length;
    if (!this.#body.add(chunk)) this.refuse(TOO_LARGE);
    else if (this.#bytes > this.#mayHold) void this.#pause();
  }

  async #pause(): Promise<void> {
    const { request } = this.#exchange;
    this.#isPaused = true;
    request.pause();
    try {
      if (this.#target === 'unchecked') await this.#checkTarget();
      const length = this.#length();
      // How far one goes that does not tell its length is not known: it has a turn for twice what it holds, and then a larger one.
      const bytes = length ?? (this.#bytes > LARGE_BYTES ? 2 * this.#bytes : LARGE_BYTES);
      if (bytes > LARGE_BYTES) await this.#waitForTurn(bytes);
      this.#mayHold = length === undefined ? bytes : Number.POSITIVE_INFINITY;
      this.#isPaused = false;
      request.resume();
    } catch (error) {
      this.refuse(toHttpError(error));
    }
  }

  async #checkTarget(): Promise<void> {
    const { request, match, path, requestId } = this.#exchange;
    if (match.refusal !== undefined) return;
    const { method = '', headers } = request;
    const peer = request.socket.remoteAddress;
    const head = { method, path, headers, body: this.#body.bytes(), requestId, peer };
    const limit = (await match.route.checkTarget?.(head, match.parameter)) ?? bodyLimit(this.#exchange);
    if (!this.#body.limitTo(limit) || (this.#length() ?? 0) > limit) throw TOO_LARGE;
    this.#target = 'exists';
  }

  #length(): number | undefined {
    const length = this.#exchange.request.headers['content-length'];
    return length === undefined ? undefined : Number(length);
  }

  /** The turn lasts until the answer is sent: what follows the body is most of the work. */
  async #waitForTurn(bytes: number): Promise<void> {
    const { response, path } = this.#exchange;
    // It gives up the smaller one first: else two bodies that grow could wait for each other.
    response.off('close', this.#leaveTurn);
    this.#leaveTurn();
    this.#leastTurnBytesPerSec = 0;
    const sender = new AbortController();
    const left = (): void => sender.abort();
    response.once('close', left);
    this.#leaveTurn = await this.#largeBodies.enter(path, bytes, sender.signal);
    response.off('close', left);
    this.#leastTurnBytesPerSec = Math.min(bytes / TURN_SEC, TURN_MAX_BYTES_PER_SEC);
    this.#turnMs = 0;
    if (response.closed) this.#leaveTurn();
    else response.once('close', this.#leaveTurn);
  }

  /** True once: for the first of whole, refused and left. */
  #leave(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#all.delete(this);
    return true;
  }
}

/** What the route takes, or what the public routes take. */
export function bodyLimit({ match }: Pick<Exchange, 'match'>): number {
  if (match.refusal !== undefined) return MAX_BODY_BYTES;
  return match.route.maxBodyBytes ?? MAX_BODY_BYTES;
}
