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
    const { checkMs, slowMs } = this.#times;
    const leastBytes = (MIN_BYTES_PER_SEC * checkMs) / MS_PER_SEC;
    for (const one of this.#reading) if (one.slowChecks(leastBytes) * checkMs >= slowMs) one.refuse(TOO_SLOW);
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
  #target: 'unchecked' | 'asked' | 'exists' = 'exists';
  #leaveTurn: () => void = () => undefined;
  #isOver = false;

  constructor(exchange: Exchange, listener: BodyListener, all: Set<Reading>, largeBodies: LargeBodies) {
    this.#exchange = exchange;
    this.#listener = listener;
    this.#all = all;
    this.#largeBodies = largeBodies;
    const { request, match } = exchange;
    this.#body = new BodyBuffer(bodyLimit(exchange));
    if (match.refusal === undefined && match.route.checkTarget !== undefined) this.#target = 'unchecked';
    request.on('data', (chunk: Buffer) => this.#add(chunk));
    request.on('end', () => {
      if (this.#leave()) listener.onBody(exchange, this.#body.bytes());
    });
    // Where the sender left in the middle.
    request.on('close', () => {
      if (this.#leave()) exchange.budget.leave(this.#bytes);
    });
  }

  /** For how many checks in a row, this one included, the sender has sent less than `leastBytes`. */
  slowChecks(leastBytes: number): number {
    const isSlow = this.#target !== 'asked' && this.#bytes - this.#bytesAtCheck < leastBytes;
    this.#bytesAtCheck = this.#bytes;
    this.#slowChecks = isSlow ? this.#slowChecks + 1 : 0;
    return this.#slowChecks;
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
    else if (this.#target === 'unchecked' && this.#bytes > UNCHECKED_BYTES) void this.#checkTarget();
  }

  async #checkTarget(): Promise<void> {
    const { request, match, path, requestId } = this.#exchange;
    if (match.refusal !== undefined) return;
    this.#target = 'asked';
    request.pause();
    const { method = '', headers } = request;
    const peer = request.socket.remoteAddress;
    const head = { method, path, headers, body: this.#body.bytes(), requestId, peer };
    try {
      const limit = (await match.route.checkTarget?.(head, match.parameter)) ?? bodyLimit(this.#exchange);
      const length = Number(headers['content-length'] ?? limit);
      if (!this.#body.limitTo(limit) || Number(headers['content-length']) > limit) {
        this.refuse(TOO_LARGE);
        return;
      }
      if (length > LARGE_BYTES) await this.#waitForTurn(length);
      this.#target = 'exists';
      request.resume();
    } catch (error) {
      this.refuse(toHttpError(error));
    }
  }

  /** The turn lasts until the answer is sent: what follows the body is most of the work. */
  async #waitForTurn(bytes: number): Promise<void> {
    const { response, path } = this.#exchange;
    const sender = new AbortController();
    const left = (): void => sender.abort();
    response.once('close', left);
    this.#leaveTurn = await this.#largeBodies.enter(path, bytes, sender.signal);
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
