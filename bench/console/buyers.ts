// A process of its own: buyers who claim until so many claims are asked for.

import { HEAD_END, type SentReport, sendOverConnections } from '../connections.ts';

export type BuyersOrder = { port: number; path: string; connections: number; claims: number; run: string };
export type BuyersReport = SentReport;

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

process.once('message', async (order: BuyersOrder) => {
  const { port, connections, claims } = order;
  const next = () => (sent < claims ? nextRequest(order) : undefined);
  const report = await sendOverConnections({ port, connections, expected: 201, next });
  process.send?.(report, () => process.disconnect?.());
});
