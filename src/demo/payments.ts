// A stream of payment events, signed as Stripe signs them and delivered at least once.

import { setTimeout as delay } from 'node:timers/promises';
import type { Claim } from '#client/index.ts';
import { within } from '#core/deadline.ts';
import { stripe } from '#core/webhook/providers/stripe.ts';
import { nodeHmac } from '../webhook/hmac.ts';
import { note, type Tally } from './tally.ts';

/** In minor units. */
export const PRICE = 4_200;
const CONCURRENCY = 16;
/** Every so manieth event is delivered a second time although the first delivery was taken. */
const AGAIN_EVERY = 5;
const TIMEOUT_MS = 30_000;
/** A delivery is tried again for longer than any outage the demo makes. */
const RETRY = { firstPauseMs: 250, longestPauseMs: 4_000, giveUpMs: 180_000 };

export interface PaymentsOptions {
  readonly url: string;
  readonly secret: string;
  /** Whose account the money goes to: one that is new, so that its balance is what this demo paid. */
  readonly account: string;
  readonly signal: AbortSignal;
  readonly tally: Tally;
}

export class Payments {
  readonly #options: PaymentsOptions;
  readonly #waiting: Claim[] = [];
  readonly #workers: Promise<void>[] = [];
  #running = 0;
  #isClosed = false;

  constructor(options: PaymentsOptions) {
    this.#options = options;
  }

  /** The buyer pays. A server without a door for Stripe is found out with the first event, and the rest is left out. */
  pay(claim: Claim): void {
    if (this.#isClosed) return;
    this.#waiting.push(claim);
    if (this.#running >= CONCURRENCY) return;
    this.#running++;
    const worker = this.#work().finally(() => this.#running--);
    // It fails only when the demo is called off, and done() tells that.
    worker.catch(() => undefined);
    this.#workers.push(worker);
  }

  /** Resolves when every event is taken. */
  async done(): Promise<void> {
    while (this.#running > 0) await Promise.all(this.#workers);
  }

  async #work(): Promise<void> {
    for (let claim = this.#waiting.shift(); claim !== undefined; claim = this.#waiting.shift()) {
      const { tally } = this.#options;
      const body = eventOf(claim, this.#options.account);
      if (!(await this.#deliver(body))) continue;
      tally.paid++;
      if (tally.paid % AGAIN_EVERY === 0) await this.#deliver(body);
    }
  }

  /** Delivers until the server accepts it, as the provider would. False when another try would not help. */
  async #deliver(body: string): Promise<boolean> {
    const { tally, signal } = this.#options;
    const giveUpAt = Date.now() + RETRY.giveUpMs;
    for (let pause = RETRY.firstPauseMs; !this.#isClosed; pause = Math.min(RETRY.longestPauseMs, pause * 2)) {
      const status = await this.#post(body);
      signal.throwIfAborted();
      if (status >= 200 && status < 300) {
        tally.deliveries++;
        return true;
      }
      if (status === 404) return this.#leaveOut('this server has no door for Stripe (404)');
      const isPassing = status === 0 || status === 429 || status >= 500;
      if (!isPassing || Date.now() > giveUpAt) {
        note(tally, `a payment event was refused with ${status}`);
        return false;
      }
      tally.triedAgain++;
      await delay(pause, undefined, { signal });
    }
    return false;
  }

  #leaveOut(why: string): false {
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#options.tally.noPayments = why;
    return false;
  }

  /** The status, or 0 if the server did not answer. */
  async #post(body: string): Promise<number> {
    const { secret, signal } = this.#options;
    const url = `${this.#options.url}/webhooks/stripe`;
    const context = { port: nodeHmac, nowSec: Math.floor(Date.now() / 1_000) };
    const signed = await stripe.sign({ method: 'POST', url, body: Buffer.from(body) }, secret, context);
    try {
      const post = async (ending: AbortSignal) => {
        const response = await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...signed },
          body,
          signal: ending,
        });
        await response.arrayBuffer();
        return response.status;
      };
      return await within(post, TIMEOUT_MS, signal);
    } catch {
      return 0;
    }
  }
}

/** The same bytes for the same claim: delivered again, it is the same event. */
function eventOf({ claim_id, claimed_at }: Claim, account: string): string {
  const name = claim_id.replaceAll('-', '');
  return JSON.stringify({
    id: `evt_${name}`,
    object: 'event',
    type: 'payment_intent.succeeded',
    created: Math.floor(Date.parse(claimed_at) / 1_000),
    data: {
      object: {
        id: `pi_${name}`,
        object: 'payment_intent',
        amount: PRICE,
        amount_received: PRICE,
        currency: 'eur',
        metadata: { user_id: account, claim_id },
      },
    },
  });
}
