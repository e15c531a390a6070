// Which databases do not answer this server, and since when: what the databases that do answer are told.

import type { MarkKind } from '#core/console/marks.ts';

/** As public.note_marks takes it. */
export interface NewMark {
  readonly kind: Exclude<MarkKind, 'action'>;
  readonly subject: string;
  readonly began_ms: number;
  /** Null: it goes on. */
  readonly ended_ms: number | null;
  /** What is known of the cause. It names no person. */
  readonly why?: string;
}

/** One late answer is a busy machine. */
const MISSES_TO_BE_AWAY = 2;
/** How long an outage that is over is told: a database that was away too hears of it when it is back. */
const TELL_FOR_MS = 60_000;
/** As audit.note_mark joins them. */
const SAME_OUTAGE_MS = 10_000;

export class Outages {
  readonly #misses = new Map<string, { sinceMs: number; times: number }>();
  #ended: NewMark[] = [];

  see(name: string, isOk: boolean, nowMs: number): void {
    const missed = this.#misses.get(name);
    if (!isOk)
      this.#misses.set(name, missed ? { ...missed, times: missed.times + 1 } : this.#begin(name, nowMs));
    else if (missed !== undefined) {
      this.#misses.delete(name);
      if (missed.times >= MISSES_TO_BE_AWAY)
        this.#ended.push({ kind: 'outage', subject: name, began_ms: missed.sinceMs, ended_ms: nowMs });
    }
    this.#ended = this.#ended.filter(({ ended_ms }) => (ended_ms ?? 0) > nowMs - TELL_FOR_MS);
  }

  /** An outage that has just ended goes on: the databases would join the two anyway. */
  #begin(name: string, nowMs: number): { sinceMs: number; times: number } {
    const before = this.#ended.find(
      ({ subject, ended_ms }) => subject === name && nowMs - (ended_ms ?? 0) <= SAME_OUTAGE_MS,
    );
    if (before === undefined) return { sinceMs: nowMs, times: 1 };
    this.#ended = this.#ended.filter((mark) => mark !== before);
    return { sinceMs: before.began_ms, times: MISSES_TO_BE_AWAY };
  }

  /** Since when a database does not answer; undefined where it does. */
  sinceMs(name: string): number | undefined {
    return this.#misses.get(name)?.sinceMs;
  }

  get marks(): NewMark[] {
    const open = [...this.#misses].filter(([, { times }]) => times >= MISSES_TO_BE_AWAY);
    return [
      ...open.map(
        ([subject, { sinceMs }]): NewMark => ({
          kind: 'outage',
          subject,
          began_ms: sinceMs,
          ended_ms: null,
        }),
      ),
      ...this.#ended,
    ];
  }
}
