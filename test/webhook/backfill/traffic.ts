// A day at the providers, made short: lives of payments at Stripe, calls and messages at Twilio, each told when it happens.

import { setTimeout } from 'node:timers/promises';
import type { Random } from '../../../chaos/random.ts';
import type { SentEvent } from '../../../src/stripe_stand_in/books.ts';
import type { Life, StripeEvent } from '../lives/life.ts';
import type { Senders } from './senders.ts';
import { call, callbackOf, message, messageCallbackOf, type Providers } from './support.ts';

const TICK_MS = 50;
const LIVES_AT_ONCE = 20;
const CALL_ENDS = ['completed', 'completed', 'busy', 'no-answer', 'failed'];
const MESSAGE_ENDS = ['delivered', 'delivered', 'undelivered', 'failed'];

export interface TrafficOptions {
  providers: Providers;
  senders: Senders;
  serverUrl: string;
  lives: Life[];
  random: Random;
  /** Of Stripe's; there are a quarter as many calls and as many messages. */
  eventsPerSec: number;
}

export class Traffic {
  readonly #options: TrafficOptions;
  readonly #active: { life: Life; left: StripeEvent[] }[] = [];
  readonly #waiting: Life[];
  /** Lives of which every event has been told. */
  readonly finished: Life[] = [];
  readonly told = { stripe: new Set<string>(), twilio: new Set<string>() };
  #calls = 0;

  constructor(options: TrafficOptions) {
    this.#options = options;
    this.#waiting = [...options.lives];
  }

  /** Goes on until stopped, or no life is left. */
  async run(stop: AbortSignal): Promise<void> {
    const { eventsPerSec, random } = this.#options;
    const startedMs = Date.now();
    for (let done = 0; !stop.aborted; await setTimeout(TICK_MS)) {
      const due = Math.floor(((Date.now() - startedMs) / 1_000) * eventsPerSec);
      for (; done < due; done++) {
        this.#tellNext();
        if (random.chance(0.25)) this.#endCall();
        if (random.chance(0.25)) this.#endMessage();
      }
    }
    // No life ends in the middle: its books would be ahead of what was told.
    while (this.#active.some(({ left }) => left.length > 0)) this.#tellNext(false);
  }

  #tellNext(mayBegin = true): void {
    const { random } = this.#options;
    while (mayBegin && this.#active.length < LIVES_AT_ONCE && this.#waiting.length > 0) {
      const life = this.#waiting.shift() as Life;
      this.#active.push({ life, left: [...life.events] });
    }
    if (this.#active.length === 0) return;
    const chosen = random.pick(this.#active);
    const event = chosen.left.shift();
    if (event !== undefined) this.#tell(event);
    if (chosen.left.length > 0) return;
    this.#active.splice(this.#active.indexOf(chosen), 1);
    this.finished.push(chosen.life);
  }

  #tell({ id, body }: StripeEvent): void {
    const { providers, senders, serverUrl, random } = this.#options;
    const event: SentEvent = { ...JSON.parse(body), created: Math.floor(Date.now() / 1_000) };
    providers.stripe.send(event);
    this.told.stripe.add(id);
    const url = `${serverUrl}/webhooks/${random.pick(['stripe', 'stripe-inline'])}`;
    const delivery = {
      url,
      provider: 'stripe',
      body: JSON.stringify({ ...event, pending_webhooks: 1 }),
    } as const;
    senders.stripe(id, delivery, () => providers.stripe.markDelivered(id));
  }

  #endCall(): void {
    const { providers, random } = this.#options;
    const ended = call(`CA${++this.#calls}`, { status: random.pick(CALL_ENDS) });
    providers.twilio.calls.set(ended.sid, ended);
    this.#callBack(`call:${ended.sid}:${ended.status}`, callbackOf(ended));
  }

  #endMessage(): void {
    const { providers, random } = this.#options;
    const told = message(`SM${++this.#calls}`, { status: random.pick(MESSAGE_ENDS) });
    providers.twilio.messages.set(told.sid, told);
    this.#callBack(`message:${told.sid}:${told.status}`, messageCallbackOf(told));
  }

  #callBack(id: string, body: string): void {
    const { senders, serverUrl } = this.#options;
    this.told.twilio.add(id);
    senders.twilio(id, { url: `${serverUrl}/webhooks/twilio`, provider: 'twilio', body });
  }
}
