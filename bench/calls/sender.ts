// A process of its own that sends signed call events over connections that stay open, one after the other on each, and
// reports when each was answered. Signing is its work, so that it does not count as the server's.

import { createHmac, randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import type { Finished } from '../stats.ts';

export type Order = { port: number; connections: number; seconds: number; site: string; secret: string };
export type Report = { finished: Finished[]; refused: number };

const MS_PER_SEC = 1_000;
const US_PER_MS = 1_000;
const HEAD_END = '\r\n\r\n';

let sent = 0;
const run = randomUUID();

function nextRequest({ site, secret }: Order): string {
  const payload = { caller: '+15550100', callee: '+15550199', line: sent++, run };
  const body = JSON.stringify({ kind: 'ring', occurred_at: new Date().toISOString(), payload });
  const timestamp = String(Math.floor(Date.now() / MS_PER_SEC));
  const signature = createHmac('sha256', secret).update(`${site}.${timestamp}.${body}`).digest('hex');
  return [
    'POST /call-events HTTP/1.1',
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Ops-Site: ${site}`,
    `X-Ops-Timestamp: ${timestamp}`,
    `X-Ops-Signature: ${signature}${HEAD_END}${body}`,
  ].join('\r\n');
}

/** Resolves with the status once the whole answer is there. */
function exchange(socket: Socket, request: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    const onData = (chunk: string): void => {
      text += chunk;
      const head = text.indexOf(HEAD_END);
      const length = /content-length: (\d+)/i.exec(text)?.[1];
      if (head < 0 || length === undefined || text.length < head + HEAD_END.length + Number(length)) return;
      socket.off('data', onData).off('error', reject);
      resolve(Number(text.slice(9, 12)));
    };
    socket.on('data', onData).once('error', reject);
    socket.write(request);
  });
}

async function send(order: Order, client: number, report: Report): Promise<void> {
  const socket = connect(order.port, '127.0.0.1').setEncoding('latin1').setNoDelay(true);
  const untilMs = performance.now() + order.seconds * MS_PER_SEC;
  while (performance.now() < untilMs) {
    const request = nextRequest(order);
    const startedMs = performance.now();
    const status = await exchange(socket, request);
    const endMs = performance.now();
    if (status !== 200) report.refused++;
    report.finished.push({ client, endUs: endMs * US_PER_MS, tookUs: (endMs - startedMs) * US_PER_MS });
  }
  socket.destroy();
}

process.once('message', async (order: Order) => {
  const report: Report = { finished: [], refused: 0 };
  await Promise.all(Array.from({ length: order.connections }, (_, client) => send(order, client, report)));
  process.send?.(report, () => process.disconnect?.());
});
