// Answers by key, asked for once a second each, whoever asks: a request costs no question of its own, and what has changed
// shows within that second. Where it is allowed, an answer that has grown old is given while the new one takes long.

import { MISSING_MS, MissingNames } from './missing_names.ts';
import type { Clock } from './ports.ts';

export const KEPT_MS = MISSING_MS;
/** Keys come from outside; without a bound they would fill the memory. */
const MAX_KEPT = 1_000;
/** A question that takes longer is not waited for where an old answer will do. */
const PATIENCE_MS = 100;

interface Kept<Answer> {
  readonly answer: Promise<Answer>;
  readonly untilMs: number;
}

export class AnswerCache<Answer> {
  readonly #ask: (key: string) => Promise<Answer>;
  readonly #now: Clock;
  readonly #staleMs: number;
  /** One question at a time for each key, however long it takes; no more of them than requests are under way. */
  readonly #asking = new Map<string, Promise<Answer>>();
  readonly #kept = new Map<string, Kept<Answer>>();
  /** Keys whose answer is undefined. Apart from the others: made-up ones must not push out what is there. */
  readonly #missing: MissingNames;

  /** `staleMs`: for how long after its second an answer will do while the next one takes long. */
  constructor(ask: (key: string) => Promise<Answer>, now: Clock, staleMs = 0) {
    this.#ask = ask;
    this.#now = now;
    this.#staleMs = staleMs;
    this.#missing = new MissingNames(now);
  }

  /** What was answered within the last second, or is about to be; the old answer where that takes long and it will do. */
  get(key: string): Promise<Answer> {
    const kept = this.#kept.get(key);
    if (kept !== undefined && this.#now() < kept.untilMs) return kept.answer;
    const asking = this.#asking.get(key);
    if (asking !== undefined) return asking;
    if (this.#missing.has(key)) return Promise.resolve(undefined as Answer);
    const fresh = this.#askNow(key);
    const isUsable = kept !== undefined && this.#now() < kept.untilMs + this.#staleMs;
    const answer = isUsable ? firstOf(fresh, kept.answer) : fresh;
    this.#asking.set(key, answer);
    return answer;
  }

  /** A failure is told to those who waited and then forgotten. */
  async #askNow(key: string): Promise<Answer> {
    try {
      const answer = await this.#ask(key);
      this.#keep(key, answer);
      return answer;
    } finally {
      this.#asking.delete(key);
    }
  }

  #keep(key: string, answer: Answer): void {
    // Deleted first, so that the order of the map is that of the answers and the first entry is the oldest.
    this.#kept.delete(key);
    if (answer === undefined) {
      this.#missing.add(key);
      return;
    }
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= MAX_KEPT) this.#kept.delete(oldest);
    this.#kept.set(key, { answer: Promise.resolve(answer), untilMs: this.#now() + KEPT_MS });
  }
}

async function firstOf<Answer>(fresh: Promise<Answer>, old: Promise<Answer>): Promise<Answer> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = new Promise<Answer>((resolve) => {
    timer = setTimeout(() => resolve(old), PATIENCE_MS);
  });
  try {
    return await Promise.race([fresh, patience]);
  } finally {
    clearTimeout(timer);
  }
}
