// One HTTP request with a deadline. No answer is an answer too: undefined.

import { type Agent, request as httpRequest } from 'node:http';

// biome-ignore lint/suspicious/noExplicitAny: each client reads of an answer what it needs, and counts what it does not know.
export type Answer = { status: number; json: any };

export type Asking = {
  port: number;
  path: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  agent: Agent;
  timeoutMs?: number;
};

/** Longer than any healthy answer takes, shorter than most faults: some clients give up while the server still works. */
const TIMEOUT_MS = 6_000;

export function ask({
  port,
  path,
  method = 'GET',
  headers = {},
  body,
  agent,
  timeoutMs = TIMEOUT_MS,
}: Asking): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const length: Record<string, string | number> =
      body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const request = httpRequest(
      { host: '127.0.0.1', port, path, method, headers: { ...length, ...headers }, agent },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        // Half an answer is none.
        response.on('error', () => finish(undefined));
        response.on('end', () =>
          finish(answerOf(response.statusCode ?? 0, Buffer.concat(chunks).toString())),
        );
      },
    );
    const timer = setTimeout(() => request.destroy(new Error('no answer in time')), timeoutMs);
    const finish = (answer: Answer | undefined): void => {
      clearTimeout(timer);
      resolve(answer);
    };
    request.on('error', () => finish(undefined));
    request.on('close', () => finish(undefined));
    request.end(body);
  });
}

function answerOf(status: number, text: string): Answer | undefined {
  try {
    return { status, json: text === '' ? undefined : JSON.parse(text) };
  } catch {
    // Cut in the middle by a server that died.
    return undefined;
  }
}
