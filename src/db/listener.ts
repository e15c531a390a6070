// Listens to one channel on a connection of its own. A lost connection is made again; what was said meanwhile is made up
// for by one notice, because a notice says "look" and not what there is to see.

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Log } from '#core/ports.ts';

export interface ListenerOptions {
  url: string;
  channel: string;
  onNotice(): void;
  log: Log;
}

export interface Listener {
  stop(): Promise<void>;
}

const RECONNECT_MS = 1_000;
const CONNECT_TIMEOUT_MS = 3_000;

export function startListener({ url, channel, onNotice, log }: ListenerOptions): Listener {
  const stopping = new AbortController();
  const { signal } = stopping;

  /** Resolves when the connection is lost or nobody needs it any more. */
  async function listen(): Promise<void> {
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

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await listen();
      } catch (error) {
        log.warn('listener cannot connect', { channel, cause: error });
      }
      await sleep(RECONNECT_MS, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
