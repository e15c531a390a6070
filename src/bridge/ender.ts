// The ender of a worker process: looks for holds that ran out, and for claims that are going to end.

import { createEndPorts, Ender } from '#core/bridge/ends.ts';
import type { Log } from '#core/ports.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { type Loop, startLoop } from '../loop.ts';

export interface EnderOptions {
  db1Url: string;
  db2Url: string;
  log: Log;
}

/** Seats are free a second after their hold: one half is for the pause, the other for the work, which takes longer when much is due. */
const HOLDS_EVERY_MS = 500;
const ENDS_EVERY_MS = 250;
/** One for holds, one for ends: a million holds that are due at once must not keep up a discard. */
const DB1_CONNECTIONS = 2;

export function startEnder(options: EnderOptions): Loop {
  const { ender, end } = openEnder(options);
  const loops = [
    startLoop(
      'the end of holds',
      HOLDS_EVERY_MS,
      options.log,
      async (signal) => void (await ender.expire(signal)),
    ),
    startLoop(
      'the end of claims',
      ENDS_EVERY_MS,
      options.log,
      async (signal) => void (await ender.end(signal)),
    ),
  ];
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
      await end();
    },
  };
}

/** Ends what is due now. While the ledger is away, what needs it stays as it is. */
export async function endOnce(options: EnderOptions, signal: AbortSignal): Promise<void> {
  const { ender, end } = openEnder(options);
  try {
    await ender.expire(signal);
    await ender
      .end(signal)
      .catch((cause: unknown) => options.log.warn('claims that are to end wait', { cause }));
  } finally {
    await end();
  }
}

function openEnder({ db1Url, db2Url, log }: EnderOptions): { ender: Ender; end(): Promise<void> } {
  const applicationName = 'sluice-worker';
  const db1 = createDatabase({ url: db1Url, max: DB1_CONNECTIONS, applicationName, log });
  let db2: Database | undefined;
  const ledger = (): Database => {
    db2 ??= createDatabase({ url: db2Url, max: 1, applicationName, log });
    return db2;
  };
  const ports = createEndPorts(
    (name, args) => db1.call(`public.${name}`, args),
    () => (name, args) => ledger().call(`public.${name}`, args),
    log,
  );
  return {
    ender: new Ender(ports),
    async end() {
      await Promise.all([db1.end(), db2?.end()]);
    },
  };
}
