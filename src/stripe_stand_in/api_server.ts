// What stand-ins of providers share: HTTP on loopback, every request kept, and faults in the middle.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ApiAnswer {
  status: number;
  /** A text is sent as it is, anything else as JSON. */
  body: unknown;
  headers?: Record<string, string>;
}

/** `cut` ends the connection in the middle of the answer, `gone` before anything was done. */
export type Fault = ApiAnswer | 'cut' | 'gone';

export interface ApiRequest {
  method: string;
  url: URL;
  headers: IncomingMessage['headers'];
  body: string;
}

type Answering = (request: ApiRequest) => ApiAnswer | Promise<ApiAnswer>;

/** No answer is kept for tests that run for long. */
const KEPT_REQUESTS = 10_000;
const MAX_BODY_BYTES = 1024 * 1024;

export class ApiServer {
  /** What the next requests meet, the first one first; undefined lets one pass. */
  readonly faults: (Fault | undefined)[] = [];
  readonly requests: ApiRequest[] = [];
  /** Awaited before each answer. */
  gate: (request: ApiRequest) => Promise<void> = () => Promise.resolve();
  /** What a request meets that no fault was put in for; undefined lets it pass. */
  meet: (request: ApiRequest) => Promise<Fault | undefined> = () => Promise.resolve(undefined);
  readonly #server: Server;

  constructor(answer: Answering) {
    this.#server = createServer((incoming, response) => {
      this.#serve(incoming, response, answer).catch(() => response.destroy());
    });
  }

  /** 0 is a free port. */
  async listen(port = 0): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', resolve);
    });
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

  async #serve(incoming: IncomingMessage, response: ServerResponse, answer: Answering): Promise<void> {
    const { method = 'GET', headers } = incoming;
    const url = new URL(incoming.url ?? '/', this.url);
    const request = { method, url, headers, body: await bodyOf(incoming) };
    this.requests.push(request);
    if (this.requests.length > KEPT_REQUESTS) this.requests.shift();
    const given = this.faults.shift();
    await this.gate(request);
    const fault = given ?? (await this.meet(request));
    if (fault === 'gone') {
      response.destroy();
      return;
    }
    const { status, body, headers: more } = typeof fault === 'object' ? fault : await answer(request);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      ...more,
    });
    if (fault !== 'cut') {
      response.end(text);
      return;
    }
    response.write(text.slice(0, text.length / 2), () => response.destroy());
  }
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of incoming as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MAX_BODY_BYTES) throw new Error('the body is too large');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
