// Answers that go on: each ends with its reader, or with the server. An address may have so many of them open at once.

import type { ServerResponse } from 'node:http';
import { toHttpError } from '#core/failure.ts';
import { errorResponse, type HttpResponse } from '#core/router.ts';
import type { StreamLimit } from './address_limits.ts';
import { type Exchange, writeHead } from './exchange.ts';

/** What may wait for the reader of a stream before it counts as gone: minutes of samples. */
const MAX_STREAM_BUFFER_BYTES = 64 * 1024;
const OPERATORS = /^\/admin\//;

type Entered = ReturnType<StreamLimit['enter']>;

export class Streams {
  readonly #following = new Set<ServerResponse>();
  /** Answers in parts. */
  readonly #sending = new Set<ServerResponse>();
  readonly #limit: StreamLimit | undefined;
  #isEnding = false;

  constructor(limit?: StreamLimit) {
    this.#limit = limit;
  }

  begin(exchange: Exchange, answer: HttpResponse): void {
    let entered: Entered;
    try {
      entered = this.#enter(exchange);
    } catch (error) {
      refuse(exchange, error);
      return;
    }
    if (typeof entered === 'function') this.#open(exchange, answer, entered);
    else
      entered.then(
        (leave) => this.#open(exchange, answer, leave),
        (error: unknown) => refuse(exchange, error),
      );
  }

  #open({ response, requestId }: Exchange, answer: HttpResponse, leave: () => void): void {
    // It ends when the reader or the server does; nothing else will be asked on this connection.
    response.shouldKeepAlive = false;
    writeHead(response, answer, requestId);
    response.flushHeaders();
    if (this.#isEnding || response.destroyed) {
      leave();
      response.end();
      return;
    }
    this.#following.add(response);
    const closing = new AbortController();
    response.on('close', () => {
      leave();
      this.#following.delete(response);
      closing.abort();
    });
    const send = (text: string): boolean => {
      if (response.destroyed || response.writableEnded) return false;
      response.write(text);
      if (response.writableLength <= MAX_STREAM_BUFFER_BYTES) return true;
      response.destroy();
      return false;
    };
    answer.follow?.(send, closing.signal, () => response.end());
  }

  /**
   * At the pace of the reader. What breaks off on our side breaks the connection, and so does the end of the server: half a file must
   * not look like a whole one. Rejects with what a part failed with.
   */
  async send(
    { response, requestId }: Exchange,
    answer: HttpResponse,
    parts: AsyncIterable<string>,
  ): Promise<void> {
    writeHead(response, answer, requestId);
    this.#sending.add(response);
    response.on('close', () => this.#sending.delete(response));
    try {
      for await (const part of parts) {
        if (this.#isEnding || response.destroyed) return;
        if (!response.write(part)) await taken(response);
      }
      response.end();
    } finally {
      if (!response.writableEnded) response.destroy();
    }
  }

  end(): void {
    this.#isEnding = true;
    for (const response of this.#following) response.end();
    for (const response of this.#sending) response.destroy();
  }

  /** Operators have proven who they are: buyers at the same address do not use up their room. */
  #enter({ request, path }: Exchange): Entered {
    if (this.#limit === undefined || OPERATORS.test(path)) return () => undefined;
    return this.#limit.enter({ headers: request.headers, peer: request.socket.remoteAddress });
  }
}

function refuse({ response, requestId }: Exchange, error: unknown): void {
  const refusal = errorResponse(toHttpError(error), requestId);
  writeHead(response, refusal, requestId);
  response.end(refusal.body);
}

/** When the reader has taken what was written, or has left. */
function taken(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      response.off('drain', go).off('close', go);
      resolve();
    };
    response.on('drain', go).on('close', go);
  });
}
