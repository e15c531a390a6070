// A process of node:cluster that answers each connection with its number, and does what the test says.

import cluster from 'node:cluster';
import { createServer } from 'node:net';

/** close: stops listening, and stays. hang: stops at the next connection, which it has taken. */
export type Told = 'close' | 'hang';

let isToHang = false;
const server = createServer((socket) => {
  if (isToHang) process.kill(process.pid, 'SIGSTOP');
  socket.on('error', () => undefined);
  socket.end(String(cluster.worker?.id));
});
server.listen(0, '127.0.0.1');
process.on('message', (told: Told) => {
  if (told === 'close') server.close();
  else isToHang = true;
});
