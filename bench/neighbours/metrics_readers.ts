import { connect } from 'node:net';
import { ask, crowd, type Neighbour, type Place, together } from './neighbour.ts';

const CLIENTS = 50;
const PIPELINED = 500;

/** Many requests in one write; the answers are read and dropped. */
function askPipelined({ port, adminKey }: Place, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', signal });
    const head = `GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${adminKey}\r\n`;
    const last = `${head}Connection: close\r\n\r\n`;
    socket.on('error', () => undefined).on('close', () => resolve());
    socket.resume().write(`${head}\r\n`.repeat(PIPELINED - 1) + last);
  });
}

export const metricsReaders: Neighbour = {
  name: 'metrics_readers',
  finding: 'N17',
  about: `${CLIENTS} clients that read /metrics, and one that asks ${PIPELINED} times in one write`,
  healthy: 'claims',
  prepare: async () => undefined,
  async start(place, times) {
    const headers = { authorization: `Bearer ${place.adminKey}` };
    return together(
      crowd(CLIENTS * times, (signal) => ask(place, { method: 'GET', path: '/metrics', headers, signal })),
      crowd(times, (signal) => askPipelined(place, signal)),
    );
  },
};
