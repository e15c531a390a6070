// Events and their deliveries (docs.stripe.com/webhooks): signed, at least once, in no order, tried again after a failure.

import { within } from '#core/deadline.ts';
import { stripe as provider } from '#core/webhook/providers/stripe.ts';
import { nodeHmac } from '../webhook/hmac.ts';
import { type Books, newId, type SentEvent } from './books.ts';

/** Where events go, as an account's webhook endpoint has it. */
export interface WebhookTarget {
  readonly url: string;
  readonly secret: string;
}

/** `held`: kept back until it is `on` again. `dropped`: never delivered, but still in the list of events. */
export type WebhookSwitch = 'on' | 'held' | 'dropped';

/** The version of the package `stripe` that the tests read the answers with. */
export const API_VERSION = '2026-10-28.endive';
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
const MAX_TRIES = 20;
const ANSWER_MS = 20_000;
const AT_ONCE = 16;

export class Events {
  readonly #books: Books;
  #target: WebhookTarget | undefined;
  #switch: WebhookSwitch = 'on';
  /** Ids of events whose delivery is due. */
  readonly #due = new Set<string>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(books: Books, target: WebhookTarget | undefined) {
    this.#books = books;
    this.#target = target;
  }

  /** Goes on with what was not delivered. */
  start(): void {
    for (const { id, state } of this.#books.list('delivery'))
      if (state === 'waiting' && !this.#underWay.has(id)) this.#due.add(id);
    this.#deliverDue();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    await Promise.allSettled(this.#underWay.values());
  }

  /** From now on; what waits is delivered there too. */
  deliverTo(target: WebhookTarget): WebhookTarget {
    this.#target = target;
    this.start();
    return target;
  }

  get webhooks(): WebhookSwitch {
    return this.#switch;
  }

  set webhooks(to: WebhookSwitch) {
    this.#switch = to;
    if (to === 'on') this.start();
  }

  tell(type: string, object: object, livemode: boolean): SentEvent {
    const created = this.#books.nowSec;
    const event = { id: newId('evt'), type, created, livemode, api_version: API_VERSION, data: { object } };
    this.#books.put('event', event);
    this.#books.put('delivery', {
      id: event.id,
      created,
      tries: 0,
      state: this.#switch === 'dropped' ? 'dropped' : 'waiting',
    });
    if (this.#switch !== 'dropped') this.#due.add(event.id);
    // After the answer to what made it.
    setImmediate(() => this.#deliverDue());
    return event;
  }

  isDelivered(eventId: string): boolean {
    return this.#books.find('delivery', eventId)?.state === 'delivered';
  }

  #deliverDue(): void {
    const target = this.#target;
    if (target === undefined) return;
    for (const id of this.#due) {
      if (this.#switch !== 'on' || this.#stopping.signal.aborted || this.#underWay.size >= AT_ONCE) return;
      this.#due.delete(id);
      const running = this.#deliver(id, target).finally(() => {
        this.#underWay.delete(id);
        this.#deliverDue();
      });
      this.#underWay.set(id, running);
    }
  }

  async #deliver(id: string, target: WebhookTarget): Promise<void> {
    const delivery = this.#books.find('delivery', id);
    const event = this.#books.find('event', id);
    if (delivery === undefined || event === undefined) return;
    const isTaken = await this.#post(event, target);
    if (this.#stopping.signal.aborted && !isTaken) return;
    const tries = delivery.tries + 1;
    const state = isTaken ? 'delivered' : tries >= MAX_TRIES ? 'given_up' : 'waiting';
    this.#books.put('delivery', { ...delivery, tries, state });
    if (state !== 'waiting') return;
    const again = () => {
      this.#timers.delete(id);
      this.#due.add(id);
      this.#deliverDue();
    };
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS);
    clearTimeout(this.#timers.get(id));
    this.#timers.set(id, setTimeout(again, pauseMs));
  }

  async #post(event: SentEvent, { url, secret }: WebhookTarget): Promise<boolean> {
    const body = JSON.stringify({
      object: 'event',
      pending_webhooks: 1,
      request: { id: null, idempotency_key: null },
      ...event,
    });
    // The machine's clock, whatever the stand-in's says: how old a signature may be is tested where signatures are.
    const context = { port: nodeHmac, nowSec: Math.floor(Date.now() / 1_000) };
    const request = { method: 'POST', url, headers: {}, body: new TextEncoder().encode(body) };
    const signature = await provider.sign(request, secret, context);
    try {
      const headers = { 'content-type': 'application/json; charset=utf-8', ...signature };
      const post = (signal: AbortSignal) => fetch(url, { method: 'POST', headers, body, signal });
      return (await within(post, ANSWER_MS, this.#stopping.signal)).ok;
    } catch {
      // No answer, or it stops: the event is delivered again.
      return false;
    }
  }
}
