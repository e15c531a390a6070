// Answers that go on: each ends with its reader, or with the server.

import type { ServerResponse } from 'node:http';
import type { HttpResponse } from '#core/router.ts';
import { writeHead } from './exchange.ts';

/** What may wait for the reader of a stream before it counts as gone: minutes of samples. */
const MAX_STREAM_BUFFER_BYTES = 64 * 1024;

export class Streams {
  readonly #open = new Set<ServerResponse>();
  #isEnding = false;

  begin(response: ServerResponse, answer: HttpResponse, requestId: string): void {
    // It ends when the reader or the server does; nothing else will be asked on this connection.
    response.shouldKeepAlive = false;
    writeHead(response, answer, requestId);
    response.flushHeaders();
    if (this.#isEnding || response.destroyed) {
      response.end();
      return;
    }
    this.#open.add(response);
    const closing = new AbortController();
    response.on('close', () => {
      this.#open.delete(response);
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

  end(): void {
    this.#isEnding = true;
    for (const response of this.#open) response.end();
  }
}
