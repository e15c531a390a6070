// Requests that a client sends without waiting for answers (pipelining). node:http makes all requests of one read at once,
// and would have all their answers made at once: 500 requests of 30 bytes became 500 pages in memory for a client that read
// none of them. Here a connection has one request under way; the next begins when the answer before it has left.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests that wait on one connection, of about 2 KB each. A read of 64 KB holds no more of 64 bytes; real clients send few. */
const MAX_WAITING = 1_000;

export class Pipelines {
  /** How many wait on a connection; only connections that have pipelined are here. */
  readonly #waiting = new WeakMap<Socket, number>();

  /** Calls `begin` when the answers before this one have left. Until none waits, nothing more is read from the connection. */
  wait(request: IncomingMessage, response: ServerResponse, begin: () => void): void {
    const { socket } = request;
    const waiting = this.#waiting.get(socket);
    // node:http resumes the socket whenever a body is read or an answer has left.
    if (waiting === undefined)
      socket.on('resume', () => {
        if ((this.#waiting.get(socket) ?? 0) > 0) socket.pause();
      });
    if (waiting === MAX_WAITING) {
      socket.destroy();
      return;
    }
    this.#waiting.set(socket, (waiting ?? 0) + 1);
    socket.pause();
    // node:http gives each response the socket in its turn.
    response.once('socket', () => {
      const left = (this.#waiting.get(socket) ?? 1) - 1;
      this.#waiting.set(socket, left);
      if (left === 0) socket.resume();
      begin();
    });
  }
}
