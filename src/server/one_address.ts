// Notices when one address makes most claims: behind a proxy that is not declared, all buyers have the proxy's address and
// share one limit. In constant memory: Boyer and Moore's majority vote. It counts the leader from the moment it leads, so what it
// says is true; a majority of hardly more than half may go unnoticed.

import type { Clock } from '#core/ports.ts';
import type { Network } from './addresses.ts';

const WINDOW_MS = 60_000;
/** Fewer say nothing: a quiet shop has one buyer at a time. */
const MIN_CLAIMS = 100;

export class OneAddressWatch {
  readonly #now: Clock;
  #startedMs = Number.NEGATIVE_INFINITY;
  #isTold = false;
  #claims = 0;
  #leader: Network | undefined;
  #votes = 0;
  #ofLeader = 0;

  constructor(now: Clock) {
    this.#now = now;
  }

  /** Counts a claim. True once a minute at most: when this network has made more than half of at least 100 in this minute. */
  see(network: Network): boolean {
    const now = this.#now();
    if (now - this.#startedMs >= WINDOW_MS) this.#begin(now);
    this.#claims++;
    const isLeader = this.#leader?.high === network.high && this.#leader.low === network.low;
    if (isLeader) {
      this.#votes++;
      this.#ofLeader++;
    } else if (this.#votes === 0) {
      this.#leader = network;
      this.#votes = 1;
      this.#ofLeader = 1;
    } else {
      this.#votes--;
    }
    if (this.#isTold || this.#claims < MIN_CLAIMS || this.#ofLeader * 2 <= this.#claims) return false;
    this.#isTold = isLeader;
    return isLeader;
  }

  #begin(now: number): void {
    this.#startedMs = now;
    this.#isTold = false;
    this.#claims = 0;
    this.#leader = undefined;
    this.#votes = 0;
    this.#ofLeader = 0;
  }
}
