import { createServer } from 'node:net';

export const LOOPBACK = '127.0.0.1';

/** True when nothing listens on the port now. Another process may still take it before we do. */
export function portIsFree(port: number): Promise<boolean> {
  return tryListen(port).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') return false;
      throw error;
    },
  );
}

/** A port the system says is free, for those who do not care which. */
export function freePort(): Promise<number> {
  return tryListen(0);
}

function tryListen(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, LOOPBACK, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : port));
    });
  });
}
