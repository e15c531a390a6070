// A process of its own: buyers over connections that stay open, one claim after the other on each, until so many are made.

import { connect, type Socket } from 'node:net';
import type { Finished } from '../stats.ts';

export type BuyersOrder = { port: number; path: string; connections: number; claims: number; run: string };
export type BuyersReport = { finished: Finished[]; refused: number };

const US_PER_MS = 1_000;
const HEAD_END = '\r\n\r\n';

let sent = 0;

function nextRequest({ path, run }: BuyersOrder): string {
  sent++;
  const body = `{"user_id":"user_${run}_${sent}","request_id":"order_${run}_${sent}"}`;
  return [
    `POST ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `Content-Length: ${body.length}${HEAD_END}${body}`,
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

async function buy(order: BuyersOrder, client: number, report: BuyersReport): Promise<void> {
  const socket = connect(order.port, '127.0.0.1').setEncoding('latin1').setNoDelay(true);
  while (sent < order.claims) {
    const request = nextRequest(order);
    const startedMs = performance.now();
    const status = await exchange(socket, request);
    const endMs = performance.now();
    if (status !== 201) report.refused++;
    report.finished.push({ client, endUs: endMs * US_PER_MS, tookUs: (endMs - startedMs) * US_PER_MS });
  }
  socket.destroy();
}

process.once('message', async (order: BuyersOrder) => {
  const report: BuyersReport = { finished: [], refused: 0 };
  await Promise.all(Array.from({ length: order.connections }, (_, client) => buy(order, client, report)));
  process.send?.(report, () => process.disconnect?.());
});
