// What a seller does in Stripe's dashboard: a payment link for the same order, a refund.

import { StackError } from '../../failure.ts';
import type { StandInClient } from '../../stripe_stand_in/client.ts';

interface Session {
  readonly id: string;
  readonly payment_intent: string | null;
  readonly amount_total: number;
  readonly currency: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly success_url: string;
}

export class Seller {
  readonly #url: string;
  readonly #key: string;
  readonly #standIn: StandInClient;

  constructor(url: string, key: string, standIn: StandInClient) {
    this.#url = url;
    this.#key = key;
    this.#standIn = standIn;
  }

  /** Another session for the order of this one; answers its id. */
  async linkLike(sessionId: string): Promise<string> {
    const session = await this.#session(sessionId);
    const form = new URLSearchParams({
      mode: 'payment',
      success_url: session.success_url,
      'line_items[0][quantity]': '1',
      'line_items[0][price_data][currency]': session.currency,
      'line_items[0][price_data][unit_amount]': String(session.amount_total),
      'line_items[0][price_data][product_data][name]': 'The same seats again',
    });
    for (const [name, value] of Object.entries(session.metadata)) {
      form.set(`metadata[${name}]`, value);
      form.set(`payment_intent_data[metadata][${name}]`, value);
    }
    return (await this.#post<Session>('/v1/checkout/sessions', form)).id;
  }

  /** All of it. */
  async refund(sessionId: string): Promise<void> {
    const { payment_intent } = await this.#session(sessionId);
    await this.#post('/v1/refunds', new URLSearchParams({ payment_intent: payment_intent ?? '' }));
  }

  async #session(id: string): Promise<Session> {
    const stored = await this.#standIn.books<{ session: Session }>('session');
    const found = stored.find(({ session }) => session.id === id);
    if (found === undefined) throw new StackError(`the stand-in has no session ${id}`, 'was it restarted?');
    return found.session;
  }

  async #post<Answer>(path: string, form: URLSearchParams): Promise<Answer> {
    const response = await fetch(`${this.#url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#key}` },
      body: form,
    });
    const answer = (await response.json()) as Answer & { error?: { message: string } };
    if (response.ok) return answer;
    throw new StackError(`the stand-in for Stripe refused ${path}: ${answer.error?.message}`, 'see its log');
  }
}
