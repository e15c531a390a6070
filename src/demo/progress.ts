// How far the demo has come.

import { drawLines, type Progress } from './lines.ts';
import type { Tally } from './tally.ts';

export interface ProgressOptions {
  readonly tally: Tally;
  readonly buyers: number;
  readonly seats: number;
  readonly out: Pick<NodeJS.WriteStream, 'write' | 'isTTY'>;
  readonly now?: () => number;
}

/** The rate is that of the last moments, so that a stop shows. */
const WINDOW_MS = 2_000;
const BAR_WIDTH = 24;

export const number = (value: number): string => value.toLocaleString('en-US');

export function startProgress(options: ProgressOptions): Progress {
  const { out, tally, buyers, seats, now = Date.now } = options;
  const wanted = () => Math.min(buyers, seats);
  const meters = [
    new Meter(
      'Claims',
      () => buyers,
      () => tally.answered,
      now,
    ),
    new Meter('Tickets', wanted, () => tally.tickets, now),
    new Meter('Payments', wanted, () => tally.paid, now),
  ];
  const lines = (): string[] => {
    const shown = meters.filter(({ name }) => name !== 'Payments' || tally.noPayments === undefined);
    return shown.map((meter) => meter.line(out.isTTY)).concat(troubleOf(tally));
  };
  return drawLines(out, lines);
}

function troubleOf({ serverSilentSince, ledgerAnswers }: Tally): string[] {
  if (serverSilentSince !== undefined) return ['The server does not answer: buyers cannot claim.'];
  return ledgerAnswers ? [] : ['The ledger does not answer: claims go on, tickets wait.'];
}

/** One count on its way to a total. */
export class Meter {
  readonly name: string;
  readonly #total: () => number;
  readonly #read: () => number;
  readonly #now: () => number;
  #seen: { at: number; count: number }[] = [];

  constructor(name: string, total: () => number, read: () => number, now: () => number) {
    this.name = name;
    this.#total = total;
    this.#read = read;
    this.#now = now;
  }

  line(withBar: boolean): string {
    const count = this.#read();
    const rate = this.#rate(count);
    const total = this.#total();
    const left = total - count;
    const share = Math.min(1, count / total);
    const bar = `[${'#'.repeat(Math.floor(share * BAR_WIDTH)).padEnd(BAR_WIDTH, '.')}] `;
    const of = `${number(count)} of ${number(total)}`;
    const speed = rate > 0 && left > 0 ? `, ${number(Math.round(rate))}/s` : '';
    const eta = rate > 0 && left > 0 ? `, ${Math.ceil(left / rate)} s left` : '';
    return withBar
      ? `${this.name.padEnd(9)} ${bar}${of}${speed}${eta}`
      : `${this.name.toLowerCase()} ${of}${speed}${eta}`;
  }

  #rate(count: number): number {
    const at = this.#now();
    this.#seen.push({ at, count });
    // One from before the window stays, so that there is always something to compare with.
    while (this.#seen.length > 2 && (this.#seen[1]?.at ?? at) < at - WINDOW_MS) this.#seen.shift();
    const [first] = this.#seen;
    return first === undefined || first.at === at ? 0 : ((count - first.count) * 1_000) / (at - first.at);
  }
}
