// A flaky network: a real server in front of another one that does to the next requests what it is told.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Afterwards it forwards. `cut_answer` tells the status and half of the body. */
export type Fault =
  | 'none'
  | 'lose_request'
  | 'lose_answer'
  | 'cut_answer'
  | 'say_nothing'
  | { status: number; headers?: Record<string, string>; body?: string };

export interface FlakyProxy {
  url: string;
  faults: Fault[];
  /** Bodies of what arrived, in order. */
  seen: string[];
  close(): Promise<void>;
}

export async function startProxy(target: string): Promise<FlakyProxy> {
  const faults: Fault[] = [];
  const seen: string[] = [];
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    seen.push(body);
    const fault = faults.shift();
    if (fault === 'lose_request') {
      response.destroy();
      return;
    }
    if (typeof fault === 'object') {
      response.writeHead(fault.status, fault.headers).end(fault.body ?? '');
      return;
    }
    if (fault === 'say_nothing') return;
    const { authorization, 'x-claim-secret': secret } = request.headers;
    const answer = await fetch(`${target}${request.url}`, {
      method: request.method ?? 'GET',
      headers: {
        'content-type': 'application/json',
        ...(authorization && { authorization }),
        ...(typeof secret === 'string' && { 'x-claim-secret': secret }),
      },
      ...(body !== '' && { body }),
    });
    const text = await answer.text();
    if (fault === 'lose_answer') {
      response.destroy();
      return;
    }
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    response.writeHead(answer.status, headers);
    if (fault === 'cut_answer')
      response.write(text.slice(0, text.length / 2), () => setImmediate(() => response.destroy()));
    else response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
