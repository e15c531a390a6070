// How far the demo has come: lines that are drawn over each other on a terminal, and one line now and then elsewhere.

import { terminalWidth } from '../commands/table.ts';
import type { Tally } from './tally.ts';

export interface Progress {
  /** Something worth a line of its own, whoever reads it. */
  say(line: string): void;
  /** Leaves the last state on the screen. */
  end(): void;
}

export interface ProgressOptions {
  readonly tally: Tally;
  readonly buyers: number;
  readonly seats: number;
  readonly out: Pick<NodeJS.WriteStream, 'write' | 'isTTY'>;
  readonly now?: () => number;
}

const REDRAW_MS = 200;
const PLAIN_EVERY_MS = 2_000;
/** The rate is that of the last moments, so that a stop shows. */
const WINDOW_MS = 2_000;
const BAR_WIDTH = 24;
const UP_AND_CLEAR = '\u001b[1A\u001b[2K';

export const number = (value: number): string => value.toLocaleString('en-US');

export function startProgress(options: ProgressOptions): Progress {
  const { out, tally, buyers, seats, now = Date.now } = options;
  const meters = [
    new Meter('Claims', buyers, () => tally.answered, now),
    new Meter('Tickets', Math.min(buyers, seats), () => tally.tickets, now),
    new Meter('Payments', Math.min(buyers, seats), () => tally.paid, now),
  ];
  const lines = (): string[] => {
    const shown = meters.filter(({ name }) => name !== 'Payments' || tally.noPayments === undefined);
    return shown.map((meter) => meter.line(out.isTTY)).concat(troubleOf(tally));
  };
  let drawn = 0;
  const clear = () => {
    out.write(UP_AND_CLEAR.repeat(drawn));
    drawn = 0;
  };
  const draw = () => {
    if (!out.isTTY) {
      out.write(`${lines().join('; ')}\n`);
      return;
    }
    clear();
    const fitting = lines().map((line) => line.slice(0, terminalWidth() - 1));
    out.write(fitting.map((line) => `${line}\n`).join(''));
    drawn = fitting.length;
  };
  const timer = setInterval(draw, out.isTTY ? REDRAW_MS : PLAIN_EVERY_MS);
  return {
    say(line) {
      clear();
      out.write(`${line}\n`);
    },
    end() {
      clearInterval(timer);
      draw();
    },
  };
}

function troubleOf({ serverSilentSince, ledgerAnswers }: Tally): string[] {
  if (serverSilentSince !== undefined) return ['The server does not answer: nobody can claim.'];
  return ledgerAnswers ? [] : ['The ledger does not answer: claims go on, tickets wait.'];
}

/** One count on its way to a total. */
export class Meter {
  readonly name: string;
  readonly #total: number;
  readonly #read: () => number;
  readonly #now: () => number;
  #seen: { at: number; count: number }[] = [];

  constructor(name: string, total: number, read: () => number, now: () => number) {
    this.name = name;
    this.#total = total;
    this.#read = read;
    this.#now = now;
  }

  line(withBar: boolean): string {
    const count = this.#read();
    const rate = this.#rate(count);
    const left = this.#total - count;
    const share = Math.min(1, count / this.#total);
    const bar = `[${'#'.repeat(Math.floor(share * BAR_WIDTH)).padEnd(BAR_WIDTH, '.')}] `;
    const of = `${number(count)} of ${number(this.#total)}`;
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
