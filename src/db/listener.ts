// Listens to one channel on a connection of its own, to the primary. A lost connection is made again, and then one notice makes
// up for all that were missed: a notice only says "look".

import pg from 'pg';
import type { Log } from '#core/ports.ts';
import { type Loop, startTurns } from '../loop.ts';
import { Connection } from './connection.ts';
import { directUrl } from './pooler.ts';
import { CONNECT_TIMEOUT_MS, type Home, openHome } from './primary.ts';

export interface ListenerOptions {
  url: string;
  channel: string;
  onNotice(): void;
  log: Log;
}

const RECONNECT_MS = 1_000;

export function startListener(options: ListenerOptions): Loop {
  const { channel, log } = options;
  const url = directUrl(options.url);
  if (url === undefined) {
    log.info('no direct address, so it looks by itself instead of being woken', { channel });
    return { stop: async () => undefined };
  }
  const home = openHome(url, log);
  const loop = startTurns(RECONNECT_MS, async (signal) => {
    try {
      await listen(options, home, signal);
    } catch (error) {
      home.doubt();
      log.warn('listener cannot connect', { channel, cause: error });
    }
  });
  return {
    async stop() {
      await loop.stop();
      await home.close();
    },
  };
}

/** Resolves when the connection is lost, the primary has moved, or `signal` aborts. */
async function listen(
  { channel, onNotice, log }: ListenerOptions,
  home: Home,
  signal: AbortSignal,
): Promise<void> {
  const connection = new Connection({
    connectionString: await home.find(),
    application_name: 'sluice-listener',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  });
  const ended = new Promise<void>((resolve) => connection.once('end', resolve));
  const forgetMoves = home.onMove(() => {
    if (connection.address !== home.address) connection.destroy();
  });
  connection.on('error', (error) => log.warn('listener lost its connection', { channel, cause: error }));
  connection.on('notification', onNotice);
  try {
    await connection.connect();
    await connection.query(`listen ${pg.escapeIdentifier(channel)}`);
    onNotice();
    await Promise.race([ended, aborted(signal)]);
  } finally {
    forgetMoves();
    await connection.end();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
