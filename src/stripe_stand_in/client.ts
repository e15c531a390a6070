// A stand-in in another process, as a test, the demo or chaos moves it.

import type Stripe from 'stripe';
import type { Kind } from './books.ts';
import { CONTROL } from './control.ts';
import type { WebhookTarget } from './events.ts';
import type { PayWith } from './sessions.ts';
import type { SwitchSettings } from './switches.ts';

export class StandInClient {
  readonly #url: string;
  readonly #key: string;

  constructor(url: string, key: string) {
    this.#url = url;
    this.#key = key;
  }

  set(change: Partial<SwitchSettings>): Promise<SwitchSettings> {
    return this.#ask('POST', '/switches', change);
  }

  deliverTo(webhook: WebhookTarget): Promise<WebhookTarget> {
    return this.#ask('POST', '/deliver_to', webhook);
  }

  /** Those whose fields are as `wanted` says. */
  books<Item>(kind: Kind, wanted: Readonly<Record<string, string>> = {}): Promise<Item[]> {
    return this.#ask('GET', `/books?${new URLSearchParams({ ...wanted, kind })}`);
  }

  /** The buyer pays; the answer is the session. */
  pay(session: string, payWith: PayWith = 'card'): Promise<Stripe.Checkout.Session> {
    return this.#ask('POST', '/pay', { session, with: payWith });
  }

  endDelayed(session: string, paid: boolean): Promise<Stripe.Checkout.Session> {
    return this.#ask('POST', '/end_delayed', { session, paid });
  }

  loseDispute(paymentIntent: string): Promise<unknown> {
    return this.#ask('POST', '/lose_dispute', { payment_intent: paymentIntent });
  }

  failRefund(refund: string): Promise<unknown> {
    return this.#ask('POST', '/fail_refund', { refund });
  }

  async #ask<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(`${this.#url}${CONTROL}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#key}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Answer & { error?: { message: string } };
    if (!response.ok) throw new Error(answer.error?.message ?? `HTTP ${response.status}`);
    return answer;
  }
}
