// What can be slow or down by itself: the ledger, a commit function, a hook's address, a handler. Each has a limit of work
// under way and a breaker of its own, so that its trouble stays with the lanes that need it.

import { Breaker } from './breaker.ts';
import type { Clock } from './ports.ts';

export class Target {
  readonly breaker: Breaker;
  /** Items under way at once, for all lanes of the target together. */
  readonly limit: number;
  readonly #probes: number;
  #busy = 0;

  constructor(limit: number, probes: number, breaker: Breaker) {
    this.limit = limit;
    this.#probes = Math.min(limit, probes);
    this.breaker = breaker;
  }

  /** How many more items may be under way now. */
  get room(): number {
    if (this.breaker.openUntilMs > 0) return 0;
    return Math.max(0, (this.breaker.isSuspect ? this.#probes : this.limit) - this.#busy);
  }

  get isIdle(): boolean {
    return this.#busy === 0;
  }

  enter(items: number): void {
    this.#busy += items;
  }

  leave(items: number): void {
    this.#busy -= items;
  }
}

export interface TargetPorts {
  readonly now: Clock;
  limitOf(name: string): number;
  /** Items that may ask a target at once whether it works again; as many as its limit where left out. */
  probesOf?(name: string): number;
  /** Hears when a target goes down, and when it is back or no lane needs it any more. */
  onChange?(name: string, isDown: boolean): void;
  /** Hears why, at each try that finds a target down. */
  onOutage?(name: string, why: string): void;
}

export class Targets {
  readonly #ports: TargetPorts;
  readonly #targets = new Map<string, Target>();

  constructor(ports: TargetPorts) {
    this.#ports = ports;
  }

  of(name: string): Target {
    let target = this.#targets.get(name);
    if (target === undefined) {
      const breaker = new Breaker(
        this.#ports.now,
        (isDown) => this.#ports.onChange?.(name, isDown),
        (why) => this.#ports.onOutage?.(name, why),
      );
      target = new Target(this.#ports.limitOf(name), this.#ports.probesOf?.(name) ?? Infinity, breaker);
      this.#targets.set(name, target);
    }
    return target;
  }

  /** Forgets the targets that no lane needs any more and that have nothing under way. */
  keepOnly(isNeeded: (name: string) => boolean): void {
    for (const [name, target] of this.#targets) {
      if (isNeeded(name) || !target.isIdle) continue;
      target.breaker.retire();
      this.#targets.delete(name);
    }
  }

  /** When the first paused target may be tried again; 0 when none is paused. */
  get pausedUntilMs(): number {
    const ends = [...this.#targets.values()].map((target) => target.breaker.openUntilMs);
    const paused = ends.filter((end) => end > 0);
    return paused.length === 0 ? 0 : Math.min(...paused);
  }

  get isAnySuspect(): boolean {
    return [...this.#targets.values()].some((target) => target.breaker.isSuspect);
  }
}
