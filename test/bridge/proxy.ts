// A TCP proxy between a worker and a database: its target can move, be down, and lose one reply after the database gave it.

import { connect, createServer, type Socket } from 'node:net';

/** ReadyForQuery outside a transaction: what the request asked for has been committed. */
const READY_FOR_QUERY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

export interface Proxy {
  /** The url of the database by way of the proxy. */
  url: string;
  /** Where connections go from now on. */
  retarget(url: string): void;
  /** Cuts the connection that next sends this text, when its reply is there and before any of it is passed on. */
  cutReplyTo(text: string): Promise<void>;
  close(): Promise<void>;
}

export async function startProxy(targetUrl: string): Promise<Proxy> {
  let port = Number(new URL(targetUrl).port);
  let armed: { text: string; done: () => void } | undefined;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const target = connect(port, '127.0.0.1');
    let cut: (() => void) | undefined;
    const end = (): void => {
      for (const socket of [client, target]) {
        socket.destroy();
        open.delete(socket);
      }
    };
    for (const socket of [client, target]) {
      open.add(socket);
      socket.on('error', end);
      socket.on('close', end);
    }
    client.on('data', (data) => {
      if (armed !== undefined && data.includes(armed.text)) {
        cut = armed.done;
        armed = undefined;
      }
      target.write(data);
    });
    target.on('data', (data: Buffer) => {
      if (cut === undefined) client.write(data);
      else if (data.subarray(-READY_FOR_QUERY.length).equals(READY_FOR_QUERY)) {
        end();
        cut();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: own } = server.address() as { port: number };
  const url = new URL(targetUrl);
  url.port = String(own);
  return {
    url: url.href,
    retarget(next) {
      port = Number(new URL(next).port);
    },
    cutReplyTo: (text) =>
      new Promise((resolve) => {
        armed = { text, done: resolve };
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}
