// Answers by key. The cache asks for each key at most once a second, however many requests want it, so a change shows within
// that second. A caller may allow old answers (`staleMs`): the cache then gives the old one while the new one takes long.

import { MISSING_MS, MissingNames } from './missing_names.ts';
import type { Clock } from './ports.ts';

export const KEPT_MS = MISSING_MS;
/** Keys come from outside; without a bound they would fill the memory. */
const MAX_KEPT = 1_000;
/** A request waits no longer than this for a new answer if it may have an old one. */
const PATIENCE_MS = 100;

interface Kept<Answer> {
  readonly answer: Promise<Answer>;
  readonly untilMs: number;
}

export class AnswerCache<Answer> {
  readonly #ask: (key: string) => Promise<Answer>;
  readonly #now: Clock;
  readonly #staleMs: number;
  /** The questions under way: at most one for each key, however long it takes. */
  readonly #asking = new Map<string, Promise<Answer>>();
  readonly #kept = new Map<string, Kept<Answer>>();
  /** Keys whose answer is undefined. Kept apart, so that made-up keys cannot push real ones out of the cache. */
  readonly #missing: MissingNames;

  /** `staleMs`: for how long after its second an old answer may stand in for a slow new one. */
  constructor(ask: (key: string) => Promise<Answer>, now: Clock, staleMs = 0) {
    this.#ask = ask;
    this.#now = now;
    this.#staleMs = staleMs;
    this.#missing = new MissingNames(now);
  }

  /** The answer of the last second, or a new one; the old one if it is young enough and the new one takes long. */
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
