// Senders who take their time, and sockets that say nothing.

import { connect, type Socket } from 'node:net';

/** A byte now and then, for as long as the other side listens. */
const DRIP_MS = 200;

export interface Slow {
  /** All that came back, once the server has closed the connection. */
  readonly ended: Promise<string>;
  readonly socket: Socket;
}

export function openSlowly(port: number, begin: string, drip?: string): Slow {
  let timer: NodeJS.Timeout | undefined;
  const socket = connect(port, '127.0.0.1', () => {
    socket.write(begin);
    if (drip !== undefined) timer = setInterval(() => socket.write(drip), DRIP_MS);
  });
  const ended = new Promise<string>((resolve) => {
    let got = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      got += text;
    });
    // Writing to what has just been closed is what a slow sender does.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(timer);
      resolve(got);
    });
  });
  return { ended, socket };
}

export const statusOf = (raw: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(raw)?.[1]);
