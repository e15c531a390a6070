// A shared cache (Redis) that may be absent, slow or restarted, with this process's own behind it. What the shared one
// cannot answer in time, ours answers as far as it knows; neither of the two ever makes a call out to be stored that is not.

import { Breaker } from '../breaker.ts';
import { inTime } from '../deadline.ts';
import type { Clock, Log } from '../ports.ts';
import type { Claim, ReplayCache } from './replay_cache.ts';

/** A cache that takes longer than the insert it is to save is of no use. */
const BUDGET_MS = 50;

export type CacheState = 'shared' | 'fallback';

export interface GuardedCacheOptions {
  readonly shared: ReplayCache;
  readonly own: ReplayCache;
  readonly now: Clock;
  readonly log: Log;
}

export class GuardedReplayCache implements ReplayCache {
  readonly #options: GuardedCacheOptions;
  readonly #breaker: Breaker;
  #state: CacheState = 'shared';
  #isProbing = false;

  constructor(options: GuardedCacheOptions) {
    this.#options = options;
    this.#breaker = new Breaker(options.now);
  }

  get state(): CacheState {
    return this.#state;
  }

  async claim(key: string): Promise<Claim> {
    const { shared, own } = this.#options;
    return (await this.#ask(() => shared.claim(key))) ?? own.claim(key);
  }

  /** In both: when the shared one goes away, ours knows what this process has stored. */
  async done(key: string): Promise<void> {
    await this.#options.own.done(key);
    await this.#ask(() => this.#options.shared.done(key));
  }

  async release(key: string): Promise<void> {
    await this.#options.own.release(key);
    await this.#ask(() => this.#options.shared.release(key));
  }

  /** The shared cache's answer; undefined where it gave none in time, or is left alone for a while. */
  async #ask<T>(question: () => T | Promise<T>): Promise<T | undefined> {
    const isSuspect = this.#breaker.isSuspect;
    // While the cache is suspect, one request at a time probes whether it is back; the others do without it.
    if (this.#breaker.openUntilMs > 0 || (isSuspect && this.#isProbing)) return undefined;
    this.#isProbing = isSuspect;
    try {
      const answer = await inTime(BUDGET_MS, question(), tooLate);
      // An answer that was under way when others failed says nothing about now.
      if (this.#breaker.openUntilMs === 0) {
        this.#breaker.succeeded();
        this.#become('shared');
      }
      return answer;
    } catch (error) {
      this.#breaker.outage();
      this.#become('fallback', error);
      return undefined;
    } finally {
      if (isSuspect) this.#isProbing = false;
    }
  }

  #become(state: CacheState, cause?: unknown): void {
    if (state === this.#state) return;
    this.#state = state;
    if (state === 'shared') this.#options.log.info('the replay cache is back');
    else this.#options.log.warn('the replay cache is away; the database decides alone', { cause });
  }
}

function tooLate(): Error {
  return new Error(`no answer within ${BUDGET_MS} ms`);
}
