// The show: a crowd, a stream of payments, and an outage where one is asked for, all at once.

import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { StackError } from '../failure.ts';
import { sendCrowd } from './crowd.ts';
import { judge, type Trial } from './judge.ts';
import { countWaiting, watchEffects, watchLedger, watchTickets } from './ledger.ts';
import type { Progress } from './lines.ts';
import { type Outage, stopLedger, untilStarted } from './outage.ts';
import { Payments } from './payments.ts';
import { type Facts, seconds } from './summary.ts';
import type { Tally } from './tally.ts';

export interface ShowOptions extends Trial {
  /** What payment events are signed with; without it there are none. */
  readonly stripeSecret: string | undefined;
  readonly outage: { readonly dir: string; readonly seconds: number } | undefined;
  readonly progress: Progress;
}

/** The outage begins when the crowd has this share of the seats that it can get: early enough that most of them wait for its end. */
const OUTAGE_AT = 0.2;
const LOOK_EVERY_MS = 20;
/** A server that restarts is back before; one that was stopped is not worth a crowd that goes on asking for minutes. */
const SERVER_PATIENCE_MS = 15_000;

export async function runShow(given: ShowOptions): Promise<Facts> {
  const ending = new AbortController();
  const options = { ...given, signal: AbortSignal.any([given.signal, ending.signal]) };
  const { url, pool, buyers, seats, db2, signal, tally } = options;
  // Every buyer of the crowd listens to these signals: so many listeners are not a leak.
  setMaxListeners(0, signal, given.signal);
  const payments = startPayments(options);
  const startedAt = Date.now();
  let burstMs: number | undefined;
  const crowd = sendCrowd({
    url,
    pool,
    buyers,
    signal,
    tally,
    onClaim: (claim) => payments?.pay(claim),
  }).then(() => {
    burstMs = Date.now() - startedAt;
  });
  const drained = watchTickets(db2, tally, () => burstMs !== undefined, signal).then(
    () => Date.now() - startedAt,
  );
  const isOver = () => burstMs !== undefined;
  const over = new AbortController();
  const looking = watchLedger(db2, tally, AbortSignal.any([signal, over.signal]));
  const parts = [crowd, drained, makeOutage(options, isOver), watchServer(tally, isOver, signal)] as const;
  for (const part of [...parts, looking]) part.catch((error: unknown) => ending.abort(error));
  await Promise.allSettled(parts);
  over.abort();
  await Promise.allSettled([looking]);
  // The others end because the first did: its reason is the one to tell.
  if (ending.signal.aborted) throw ending.signal.reason;
  const [, drainedMs, outage] = await Promise.all(parts);
  await payments?.done();
  if (payments !== undefined && tally.noPayments === undefined) await watchEffects(db2, pool, tally, signal);
  await judge(options);
  const total = burstMs ?? 0;
  return {
    pool,
    seats,
    buyers,
    burstMs: total,
    drainedMs: Math.max(0, drainedMs - total),
    outage: outage && {
      ...outage,
      askedSec: options.outage?.seconds ?? 0,
      waited: await countWaiting(db2, pool, tally.claims, outage.startedAtMs),
    },
  };
}

/** The account is named after the pool, which is new. */
function startPayments({ url, pool, stripeSecret, signal, tally }: ShowOptions): Payments | undefined {
  if (stripeSecret) return new Payments({ url, secret: stripeSecret, account: pool, signal, tally });
  tally.noPayments = 'STRIPE_WEBHOOK_SECRET is not known';
  return undefined;
}

/** Undefined where none is asked for, or where the crowd is over before it could begin; then the tally says so. */
async function makeOutage(options: ShowOptions, isOver: () => boolean): Promise<Outage | undefined> {
  const { outage, buyers, seats, tally, signal, progress } = options;
  if (outage === undefined) return undefined;
  const enough = Math.min(buyers, seats) * OUTAGE_AT;
  while (tally.claims.length < enough) {
    if (isOver()) {
      tally.noOutage = 'the crowd was over before it had a fifth of the seats that it could get';
      progress.say(`There was no outage: ${tally.noOutage}.`);
      return undefined;
    }
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
  const end = await stopLedger(outage.dir);
  const stoppedAtMs = Date.now();
  try {
    progress.say(`The ledger is stopped for ${outage.seconds} s.`);
    await delay(outage.seconds * 1_000, undefined, { signal });
  } finally {
    end();
  }
  const made = await untilStarted(tally, stoppedAtMs, signal);
  progress.say(`The ledger runs again: it was away for ${seconds(made.startedAtMs - stoppedAtMs)} s.`);
  return made;
}

async function watchServer(tally: Tally, isOver: () => boolean, signal: AbortSignal): Promise<void> {
  while (!isOver()) {
    if (Date.now() - (tally.serverSilentSince ?? Date.now()) > SERVER_PATIENCE_MS)
      throw new StackError(
        `the server has not answered for ${SERVER_PATIENCE_MS / 1_000} s`,
        'was it stopped? start it again with `npm start`, and then the demo',
      );
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}
