// Listens to one channel on a connection of its own. A lost connection is made again; what was said meanwhile is made up
// for by one notice, because a notice says "look" and not what there is to see.

import pg from 'pg';
import type { Log } from '#core/ports.ts';
import { type Loop, startTurns } from '../loop.ts';

export interface ListenerOptions {
  url: string;
  channel: string;
  onNotice(): void;
  log: Log;
}

const RECONNECT_MS = 1_000;
const CONNECT_TIMEOUT_MS = 3_000;

export function startListener(options: ListenerOptions): Loop {
  const { channel, log } = options;
  return startTurns(RECONNECT_MS, async (signal) => {
    try {
      await listen(options, signal);
    } catch (error) {
      log.warn('listener cannot connect', { channel, cause: error });
    }
  });
}

/** Resolves when the connection is lost or nobody needs it any more. */
async function listen({ url, channel, onNotice, log }: ListenerOptions, signal: AbortSignal): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice-listener',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  });
  const ended = new Promise<void>((resolve) => client.once('end', resolve));
  client.on('error', (error) => log.warn('listener lost its connection', { channel, cause: error }));
  client.on('notification', onNotice);
  try {
    await client.connect();
    await client.query(`listen ${pg.escapeIdentifier(channel)}`);
    onNotice();
    await Promise.race([ended, aborted(signal)]);
  } finally {
    await client.end();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
