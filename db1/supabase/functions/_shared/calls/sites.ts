// Sites, remembered for a moment: an event costs no question of its own, and a site that was disabled stops within a second.

import type { Clock } from '../ports.ts';
import type { CallSite, CallStore } from './store.ts';

const KEPT_MS = 1_000;
/** Unknown ids are remembered too, and come from anybody. */
const MAX_KEPT = 1_000;

interface Kept {
  readonly site: Promise<CallSite | undefined>;
  readonly untilMs: number;
}

export class SiteBook {
  readonly #store: Pick<CallStore, 'findSite'>;
  readonly #now: Clock;
  readonly #kept = new Map<string, Kept>();

  constructor(store: Pick<CallStore, 'findSite'>, now: Clock) {
    this.#store = store;
    this.#now = now;
  }

  /** Whoever asks while the question is under way waits for the same answer. */
  find(siteId: string): Promise<CallSite | undefined> {
    const kept = this.#kept.get(siteId);
    if (kept !== undefined && kept.untilMs > this.#now()) return kept.site;
    const site = this.#store.findSite(siteId);
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    const entry = { site, untilMs: this.#now() + KEPT_MS };
    this.#kept.set(siteId, entry);
    // A failed question is no answer: the next one asks again.
    site.catch(() => {
      if (this.#kept.get(siteId) === entry) this.#kept.delete(siteId);
    });
    return site;
  }
}
