// What goes wrong at the stand-in while a switch is on.

import type { ApiRequest, ApiServer, Fault } from './api_server.ts';
import type { Books } from './books.ts';
import { CONTROL } from './control.ts';
import type { Events, WebhookSwitch } from './events.ts';
import { KEY_IN_USE } from './refusal.ts';

export interface SwitchSettings {
  /** Connections are cut before a request is read by anything. */
  readonly down: boolean;
  /** The same until this moment of our clock: a caller that dies leaves nothing down. */
  readonly downUntilMs: number;
  /** Each request waits so long before it is looked at. */
  readonly slowMs: number;
  /** Requests are done, and their answers never arrive. */
  readonly cut: boolean;
  readonly webhooks: WebhookSwitch;
  /** How far its clock is ahead of ours. */
  readonly clockOffsetSec: number;
  /** So many of the next changes end with a 500 that their keys repeat. */
  readonly failNext: number;
  /** Whether such a change was done all the same. */
  readonly failuresAreDone: boolean;
}

const OFF: SwitchSettings = {
  down: false,
  downUntilMs: 0,
  slowMs: 0,
  cut: false,
  webhooks: 'on',
  clockOffsetSec: 0,
  failNext: 0,
  failuresAreDone: false,
};

export class Switches {
  readonly #books: Books;
  readonly #events: Events;
  readonly #keysInUse = new Set<string>();
  #settings = OFF;

  constructor(server: ApiServer, books: Books, events: Events) {
    this.#books = books;
    this.#events = events;
    server.meet = (request) => this.#meet(request);
  }

  get settings(): SwitchSettings {
    return this.#settings;
  }

  /** What is left out stays as it is. */
  set(change: Partial<SwitchSettings>): SwitchSettings {
    this.#settings = { ...this.#settings, ...change };
    this.#books.clockOffsetSec = this.#settings.clockOffsetSec;
    if (change.webhooks !== undefined) this.#events.webhooks = change.webhooks;
    return this.#settings;
  }

  reset(): SwitchSettings {
    return this.set(OFF);
  }

  /** How the change that is about to be made fails; undefined where it does not. */
  takeFailure(): 'done' | 'undone' | undefined {
    const { failNext, failuresAreDone } = this.#settings;
    if (failNext === 0) return undefined;
    this.set({ failNext: failNext - 1 });
    return failuresAreDone ? 'done' : 'undone';
  }

  async #meet({ url, headers }: ApiRequest): Promise<Fault | undefined> {
    if (url.pathname.startsWith(CONTROL)) return undefined;
    const key = headers['idempotency-key'];
    if (typeof key === 'string' && this.#keysInUse.has(key)) return KEY_IN_USE;
    const { slowMs } = this.#settings;
    if (slowMs > 0) {
      if (typeof key === 'string') this.#keysInUse.add(key);
      await new Promise((resolve) => setTimeout(resolve, slowMs));
      if (typeof key === 'string') this.#keysInUse.delete(key);
    }
    // As they are by now: a stand-in that went down meanwhile does not answer.
    const { down, downUntilMs, cut } = this.#settings;
    if (down || Date.now() < downUntilMs) return 'gone';
    return cut ? 'cut' : undefined;
  }
}
