// A process of its own that sends signed call events for so many seconds. Signing is its work, so that it does not count as
// the server's.

import { createHmac, randomUUID } from 'node:crypto';
import { HEAD_END, type SentReport, sendOverConnections } from '../connections.ts';

export type Order = { port: number; connections: number; seconds: number; site: string; secret: string };
export type Report = SentReport;

const MS_PER_SEC = 1_000;

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

process.once('message', async (order: Order) => {
  const { port, connections, seconds } = order;
  const untilMs = performance.now() + seconds * MS_PER_SEC;
  const next = () => (performance.now() < untilMs ? nextRequest(order) : undefined);
  const report = await sendOverConnections({ port, connections, expected: 200, next });
  process.send?.(report, () => process.disconnect?.());
});
