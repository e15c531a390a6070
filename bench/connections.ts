// Clients over connections that stay open, one request after the other on each, and when each was answered.

import { connect, type Socket } from 'node:net';
import type { Finished } from './stats.ts';

const US_PER_MS = 1_000;
export const HEAD_END = '\r\n\r\n';

export type SentReport = { finished: Finished[]; refused: number };

export interface Sending {
  readonly port: number;
  readonly connections: number;
  /** The status of every answer except refusals. */
  readonly expected: number;
  /** The next request as it goes over the wire, whichever connection asks; undefined at the end. */
  next(): string | undefined;
}

export async function sendOverConnections(sending: Sending): Promise<SentReport> {
  const report: SentReport = { finished: [], refused: 0 };
  await Promise.all(
    Array.from({ length: sending.connections }, (_, client) => send(sending, client, report)),
  );
  return report;
}

async function send({ port, expected, next }: Sending, client: number, report: SentReport): Promise<void> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1').setNoDelay(true);
  for (let request = next(); request !== undefined; request = next()) {
    const startedMs = performance.now();
    const status = await exchange(socket, request);
    const endMs = performance.now();
    if (status !== expected) report.refused++;
    report.finished.push({ client, endUs: endMs * US_PER_MS, tookUs: (endMs - startedMs) * US_PER_MS });
  }
  socket.destroy();
}

/** The status of an answer that is there to its end; undefined while a part is missing. */
export function statusIn(text: string): number | undefined {
  const head = text.indexOf(HEAD_END);
  const length = /content-length: (\d+)/i.exec(text)?.[1];
  if (head < 0 || length === undefined || text.length < head + HEAD_END.length + Number(length))
    return undefined;
  return Number(text.slice(9, 12));
}

/** Resolves with the status once the whole answer is there. */
function exchange(socket: Socket, request: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    const onData = (chunk: string): void => {
      text += chunk;
      const status = statusIn(text);
      if (status === undefined) return;
      socket.off('data', onData).off('error', reject);
      resolve(status);
    };
    socket.on('data', onData).once('error', reject);
    socket.write(request);
  });
}
