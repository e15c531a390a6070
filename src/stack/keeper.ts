// Keeps one server of the stack running: the rest goes on when it dies, and it is started again.

import { setTimeout as sleep } from 'node:timers/promises';
import { CALM_MS, pauseAfter } from '../restart_pause.ts';

/** A server that we started. */
export type Server = {
  /** Settles when it has ended, wanted or not. */
  exited: Promise<void>;
  stop(mode?: StopMode): Promise<void>;
};

/** `immediate` does not wait for Postgres to tidy up. */
export type StopMode = 'fast' | 'immediate';

export type KeeperOptions<S extends Server> = {
  /** What people call it, at the start of a line. */
  title: string;
  /** Of the server that runs; that of the one before it has `.old` at the end. */
  logFile: string;
  /** Starts it; called again after each death. Throws when it did not come up, or the signal came first. */
  launch(signal: AbortSignal): Promise<S>;
  /** It is gone, wanted or not. */
  onGone?(): void;
  say(line: string): void;
};

export class Keeper<S extends Server> {
  readonly #options: KeeperOptions<S>;
  #server: S | undefined;
  /** Aborted when the server is wanted no more; none before the first start. */
  #wanted: AbortController | undefined;
  /** The start or restart under way. It ends soon after the server is wanted no more. */
  #starting: Promise<unknown> = Promise.resolve();
  #deaths = 0;

  constructor(options: KeeperOptions<S>) {
    this.#options = options;
  }

  /** False from `stop` to `start`. A server that died is still wanted. */
  get isWanted(): boolean {
    return this.#wanted !== undefined && !this.#wanted.signal.aborted;
  }

  /** Resolves when the server is ready. Where it does not come up, it stays stopped. */
  async start(): Promise<S> {
    const wanted = new AbortController();
    this.#wanted = wanted;
    this.#deaths = 0;
    const starting = this.#launch(wanted.signal);
    this.#starting = starting.catch(() => wanted.abort());
    return starting;
  }

  /** Ends the server, or the start of it that is under way. A second call may ask for more haste. */
  async stop(mode: StopMode = 'fast'): Promise<void> {
    this.#wanted?.abort();
    await this.#starting;
    await this.#server?.stop(mode);
  }

  async #launch(signal: AbortSignal): Promise<S> {
    const server = await this.#options.launch(signal);
    const startedAt = Date.now();
    this.#server = server;
    void server.exited.then(() => {
      this.#server = undefined;
      this.#options.onGone?.();
      if (signal.aborted) return;
      if (Date.now() - startedAt > CALM_MS) this.#deaths = 0;
      this.#starting = this.#bringBack(signal);
    });
    return server;
  }

  async #bringBack(signal: AbortSignal): Promise<void> {
    const { title, logFile, say } = this.#options;
    for (let what = 'died'; !signal.aborted; what = 'did not start') {
      const pauseMs = pauseAfter(++this.#deaths);
      say(`${title} ${what}; it starts again in ${pauseMs / 1_000} s. Its log will be ${logFile}.old`);
      try {
        await sleep(pauseMs, undefined, { signal });
        await this.#launch(signal);
        say(`${title} runs again`);
        return;
      } catch {
        // The log says why, and the loop tells where it is.
      }
    }
  }
}
