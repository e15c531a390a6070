// The live view: one sampler for all who watch; it runs only while an operator watches.

import {
  HISTORY_COLUMNS,
  type History,
  type HistoryRow,
  historyRow,
  type IntakeLook,
  type LedgerLook,
  SampleMaker,
  type Seen,
} from '#core/console/sample.ts';
import { HttpError } from '#core/errors.ts';
import type { Clock, Log } from '#core/ports.ts';
import type { Follow, HttpResponse } from '#core/router.ts';

export interface LivePorts {
  lookAtIntake(): Promise<IntakeLook>;
  lookAtLedger(): Promise<LedgerLook>;
  now: Clock;
  log: Log;
}

export const EVENT_STREAM: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  // Proxies of the nginx kind would keep events until they have a bufferful.
  'x-accel-buffering': 'no',
};

export function eventText(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

const EVERY_MS = 1_000;
/** A database that has not answered by then is shown as down; the question stays open, and is not asked twice. */
const ANSWER_WITHIN_MS = 900;
const HISTORY_ROWS = 300;
/** After so long without a watcher, what was seen before says nothing about now. */
const KEEP_HISTORY_MS = 10 * 60 * 1_000;
/** Operators with many tabs, not a crowd. */
const MAX_LISTENERS = 1_000;

/** One question at a time to one database, with a deadline for the caller that waits for the answer. */
class Watched<Look> {
  readonly #ask: () => Promise<Look>;
  readonly #name: string;
  readonly #log: Log;
  #asking: { since: number } | undefined;

  constructor(name: string, ask: () => Promise<Look>, log: Log) {
    this.#name = name;
    this.#ask = ask;
    this.#log = log;
  }

  async look(): Promise<Seen<Look>> {
    const started = performance.now();
    if (this.#asking !== undefined) return { ms: started - this.#asking.since };
    this.#asking = { since: started };
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), ANSWER_WITHIN_MS);
    });
    const look = await Promise.race([this.#answer(), tooLate]);
    clearTimeout(timer);
    const ms = performance.now() - started;
    return look === undefined ? { ms } : { look, ms };
  }

  async #answer(): Promise<Look | undefined> {
    try {
      return await this.#ask();
    } catch (error) {
      // The console shows the outage already, once a second.
      this.#log.debug(`no look at ${this.#name}`, { cause: error });
      return undefined;
    } finally {
      this.#asking = undefined;
    }
  }
}

export class LiveView {
  readonly #now: Clock;
  readonly #intake: Watched<IntakeLook>;
  readonly #ledger: Watched<LedgerLook>;
  readonly #listeners = new Set<(text: string) => boolean>();
  #maker = new SampleMaker();
  #rows: HistoryRow[] = [];
  #lastWatchedMs = 0;
  #isRunning = false;
  /** The end of the pause between two samples. */
  #resume: (() => void) | undefined;

  constructor({ lookAtIntake, lookAtLedger, now, log }: LivePorts) {
    this.#now = now;
    this.#intake = new Watched('the intake', lookAtIntake, log);
    this.#ledger = new Watched('the ledger', lookAtLedger, log);
  }

  /** `event: history` once, then `event: sample` every second. */
  answer(): HttpResponse {
    if (this.#listeners.size >= MAX_LISTENERS) throw new HttpError('overloaded');
    return { status: 200, headers: EVENT_STREAM, body: '', follow: this.#follow };
  }

  readonly #follow: Follow = (send, closed) => {
    if (this.#now() - this.#lastWatchedMs > KEEP_HISTORY_MS) {
      this.#rows = [];
      this.#maker = new SampleMaker();
    }
    send(eventText('history', { columns: HISTORY_COLUMNS, rows: this.#rows } satisfies History));
    this.#lastWatchedMs = this.#now();
    this.#listeners.add(send);
    closed.addEventListener('abort', () => {
      this.#listeners.delete(send);
      this.#lastWatchedMs = this.#now();
      if (this.#listeners.size === 0) this.#resume?.();
    });
    if (!this.#isRunning) void this.#run();
  };

  /** Runs while a console listens. Nothing in it rejects. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#listeners.size > 0) {
      const started = performance.now();
      await this.#sample();
      await this.#pause(EVERY_MS - (performance.now() - started));
    }
    this.#isRunning = false;
  }

  async #sample(): Promise<void> {
    const [intake, ledger] = await Promise.all([this.#intake.look(), this.#ledger.look()]);
    const sample = this.#maker.make(this.#now(), intake, ledger);
    this.#rows.push(historyRow(sample));
    if (this.#rows.length > HISTORY_ROWS) this.#rows.shift();
    this.#lastWatchedMs = this.#now();
    // The same text for all: a sample costs the same whether one watches or two hundred.
    const text = eventText('sample', sample);
    for (const send of this.#listeners) send(text);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#resume = undefined;
        resolve();
      };
      const timer = setTimeout(end, Math.max(0, ms));
      this.#resume = end;
    });
  }
}
