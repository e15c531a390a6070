// Answers by key, asked for once a second each, whoever asks: a request costs no question of its own, and what has changed
// shows within that second.

import type { Clock } from './ports.ts';

export const KEPT_MS = 1_000;
/** Keys come from outside; without a bound, made-up ones would fill the memory. */
const MAX_KEPT = 1_000;

interface Kept<Answer> {
  readonly answer: Promise<Answer>;
  /** Infinity while the question is under way: one at a time for each key, however long it takes. */
  untilMs: number;
}

export class AnswerCache<Answer> {
  readonly #ask: (key: string) => Promise<Answer>;
  readonly #now: Clock;
  readonly #kept = new Map<string, Kept<Answer>>();

  constructor(ask: (key: string) => Promise<Answer>, now: Clock) {
    this.#ask = ask;
    this.#now = now;
  }

  /** What was answered within the last second, or is about to be. */
  get(key: string): Promise<Answer> {
    const kept = this.#kept.get(key);
    return kept !== undefined && this.#now() < kept.untilMs ? kept.answer : this.#askAgain(key);
  }

  async #askAgain(key: string): Promise<Answer> {
    // Deleted first, so that the order of the map is the order of asking and the first entry is the oldest.
    this.#kept.delete(key);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= MAX_KEPT) this.#kept.delete(oldest);
    const entry: Kept<Answer> = { answer: this.#ask(key), untilMs: Number.POSITIVE_INFINITY };
    this.#kept.set(key, entry);
    try {
      const answer = await entry.answer;
      entry.untilMs = this.#now() + KEPT_MS;
      return answer;
    } catch (error) {
      // A failure is told to those who waited and then forgotten.
      if (this.#kept.get(key) === entry) this.#kept.delete(key);
      throw error;
    }
  }
}
