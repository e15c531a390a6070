// The paid show: buyers come at once, and each does what is planned until its order is over.

import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Progress } from '../lines.ts';
import { drawLines, SILENT } from '../lines.ts';
import { Meter } from '../progress.ts';
import { type Market, type ServedBuyer, serve } from './buyer.ts';
import { type BookKeepers, type Books, readBooks } from './facts.ts';
import { judgeBooks, type Verdict } from './judge.ts';
import type { PlannedBuyer } from './plan.ts';
import { silenceStripe } from './silence.ts';

/** Refunds are sent and told after the last buyer has seen the end of their order. */
const SETTLING_MS = 30_000;
const LOOK_EVERY_MS = 1_000;

interface Counts {
  /** Buyers who mean to pay, without those for whom too few seats were left. */
  payers: number;
  answered: number;
  paid: number;
  over: number;
}

export interface PaidShow {
  readonly served: readonly ServedBuyer[];
  /** Links of tickets that were refunded. */
  readonly takenBack: readonly string[];
  readonly books: Books;
  readonly verdict: Verdict;
}

export async function runPaidShow(
  market: Omit<Market, 'onStep' | 'onTakingBack'> & { readonly graceSec: number },
  buyers: readonly PlannedBuyer[],
  keepers: BookKeepers,
  currency: string,
  isQuiet: boolean,
): Promise<PaidShow> {
  const counts: Counts = {
    ...{ answered: 0, paid: 0, over: 0 },
    payers: buyers.filter(({ way }) => way !== 'leaves').length,
  };
  const ending = new AbortController();
  const signal = AbortSignal.any([market.signal, ending.signal]);
  // Each buyer listens to it.
  setMaxListeners(0, signal, market.signal);
  const onStep: Market['onStep'] = (step) => {
    counts[step]++;
  };
  const takenBack: string[] = [];
  const onTakingBack: Market['onTakingBack'] = (ticketUrl) => takenBack.push(ticketUrl);
  const progress = isQuiet ? SILENT : startProgress(counts, buyers, market.holdSec);
  const silence = silenceStripe({ ...market, signal, say: (line) => progress.say(line) });
  try {
    const playing = buyers.map(async (buyer) => {
      const served = await serve({ ...market, signal, onStep, onTakingBack }, buyer);
      if (served.end === 'no_seats' && served.way !== 'leaves') counts.payers--;
      return served;
    });
    for (const play of [...playing, silence]) play.catch((error: unknown) => ending.abort(error));
    await Promise.allSettled(playing);
    market.signal.throwIfAborted();
    const served = await Promise.all(playing);
    progress.say('Each order is over. Refunds are on their way.');
    return { served, takenBack, ...(await untilSettled(keepers, currency, market.signal, progress)) };
  } finally {
    ending.abort();
    await silence.catch(() => undefined);
    progress.end();
  }
}

function startProgress(counts: Counts, buyers: readonly PlannedBuyer[], holdSec: number): Progress {
  const meters = [
    new Meter(
      'Claims',
      () => buyers.length,
      () => counts.answered,
      Date.now,
    ),
    new Meter(
      'Payments',
      () => counts.payers,
      () => counts.paid,
      Date.now,
    ),
    new Meter(
      'Orders',
      () => buyers.length,
      () => counts.over,
      Date.now,
    ),
  ];
  const holdEndsAt = Date.now() + holdSec * 1_000;
  return drawLines(process.stderr, () => {
    const left = Math.ceil((holdEndsAt - Date.now()) / 1_000);
    const lines = meters.map((meter) => meter.line(process.stderr.isTTY));
    return left > 0 ? [...lines, `the first holds run out in ${left} s`] : lines;
  });
}

/** Until nothing is wrong with the books, or for half a minute: then they are judged as they are. */
async function untilSettled(
  keepers: BookKeepers,
  currency: string,
  signal: AbortSignal,
  progress: Progress,
): Promise<{ books: Books; verdict: Verdict }> {
  const until = Date.now() + SETTLING_MS;
  for (;;) {
    const books = await readBooks(keepers);
    const verdict = judgeBooks(books, currency);
    if (verdict.problems.length === 0 || Date.now() > until) return { books, verdict };
    await letGo(keepers, books, progress);
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** Several demos one after the other owe more than looks right. The brake then holds their refunds for an operator: that is us. */
async function letGo({ admin }: BookKeepers, { orders }: Books, progress: Progress): Promise<void> {
  const braked = orders.flatMap(({ ledger }) =>
    ledger.refunds.filter(({ state, braked_at }) => state === 'review' && braked_at !== null),
  );
  if (braked.length === 0) return;
  progress.say(`The brake holds ${braked.length} refunds back. The demo sends them, as an operator would.`);
  await admin.post('/admin/refunds/send', { ids: braked.map(({ id }) => id), reason: 'sluice demo --paid' });
}
