// What the stand-ins of providers share: JSON over HTTP, every request kept, and faults in the middle.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ApiAnswer {
  status: number;
  /** A text is sent as it is, anything else as JSON. */
  body: unknown;
  headers?: Record<string, string>;
}

/** `cut` ends the connection in the middle of the answer, `gone` before it. */
export type Fault = ApiAnswer | 'cut' | 'gone';

export interface ApiRequest {
  url: URL;
  headers: IncomingMessage['headers'];
}

export class ApiServer {
  /** What the next requests meet, the first one first; undefined lets one pass. */
  readonly faults: (Fault | undefined)[] = [];
  readonly requests: ApiRequest[] = [];
  /** Awaited before each answer. */
  gate: (request: ApiRequest) => Promise<void> = () => Promise.resolve();
  readonly #server: Server;

  constructor(answer: (request: ApiRequest) => ApiAnswer) {
    this.#server = createServer((incoming, response) => {
      void this.#serve(incoming, response, answer);
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(
    incoming: IncomingMessage,
    response: ServerResponse,
    answer: (request: ApiRequest) => ApiAnswer,
  ): Promise<void> {
    const request = { url: new URL(incoming.url ?? '/', this.url), headers: incoming.headers };
    this.requests.push(request);
    const fault = this.faults.shift();
    await this.gate(request);
    if (fault === 'gone') {
      response.destroy();
      return;
    }
    const { status, body, headers } = typeof fault === 'object' ? fault : answer(request);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      ...headers,
    });
    if (fault !== 'cut') {
      response.end(text);
      return;
    }
    response.write(text.slice(0, text.length / 2), () => response.destroy());
  }
}
