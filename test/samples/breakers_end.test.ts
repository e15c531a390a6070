// A worker that ends does not wait for databases that take its connection and say nothing.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { it } from 'node:test';
import { NO_METRICS } from '#core/ports.ts';
import { BreakerMarks, startBreakerMarks } from '../../src/samples/breakers.ts';
import { memoryLog } from '../core/support.ts';

it('a worker that ends waits two seconds for silent databases, and no longer', async (t) => {
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  await once(silent, 'listening');
  const url = `postgres://sluice@127.0.0.1:${(silent.address() as AddressInfo).port}/postgres`;
  const marks = new BreakerMarks();
  marks.watching(NO_METRICS).count('sluice_bridge_breaker_open', { target: 'hooks.example' });
  const telling = startBreakerMarks(marks, [url, url], memoryLog());
  await once(silent, 'connection');
  const startedMs = performance.now();
  await telling.stop();
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs > 1_500 && tookMs < 3_500, `${tookMs} ms`);
});
