// An outage of the ledger. Only of the one that `npm start` runs on this machine.

import { setTimeout as delay } from 'node:timers/promises';
import { StackError } from '../failure.ts';
import { askControl } from '../stack/control.ts';
import type { Tally } from './tally.ts';

/** From when to when the ledger was away. */
export interface Outage {
  /** The stack had stopped it. */
  readonly stoppedAtMs: number;
  /** It was started again, by its own clock. */
  readonly startedAtMs: number;
}

const LOOK_EVERY_MS = 20;
/** Far longer than Postgres takes to start. */
const PATIENCE_MS = 60_000;

/** Refuses where the ledger that we are connected to is not the one of the stack, whose address is `stackUrl`. */
export function refuseOtherLedger(db2Url: string, stackUrl: string | undefined): void {
  if (db2Url === stackUrl) return;
  throw new StackError(
    'the ledger is not one that `npm start` runs on this machine, so it cannot be stopped here',
    'leave out --outage, or run the demo beside `npm start`',
  );
}

/** Stops the ledger of the stack in `dir`. Returns how to end that; it ends with this process too, however that ends. */
export async function stopLedger(dir: string): Promise<() => void> {
  // Held as a whole: Node ends the connection of an answer that it has collected as garbage, and that ends the outage.
  const answer = await askControl(dir, 'db2', 'outage');
  return () => void answer.body?.cancel();
}

/** Resolves when a ledger answers that was started after `stoppedAtMs`. */
export async function untilStarted(tally: Tally, stoppedAtMs: number, signal: AbortSignal): Promise<Outage> {
  const until = Date.now() + PATIENCE_MS;
  while (!tally.ledgerAnswers || tally.ledgerStartedAtMs < stoppedAtMs) {
    if (Date.now() > until)
      throw new StackError(
        `the ledger has not started again within ${PATIENCE_MS / 1_000} s`,
        '`npm start` says why where it runs; `sluice dev start db2` starts it',
      );
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
  return { stoppedAtMs, startedAtMs: tally.ledgerStartedAtMs };
}
