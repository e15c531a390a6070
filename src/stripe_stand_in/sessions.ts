// Checkout Sessions (docs.stripe.com/api/checkout/sessions): made, paid, expired. The texts of refusals are those that Stripe sends,
// as far as they are public: expires_at (stripe.com docs of the parameter; github.com/skillrecordings/products/pull/344,
// github.com/alexmorrisnz/moodle-paygw_stripe/pull/72), expire of a session that is not open (github.com/Sylius/PayumStripePlugin/issues/70).

import type Stripe from 'stripe';
import { type Books, newId, type StoredSession } from './books.ts';
import type { Events } from './events.ts';
import { type Form, formIn, required, textIn, textsIn, wholeIn } from './form.ts';
import type { Money } from './money.ts';
import { blankIntent, blankSession } from './objects.ts';
import { missing, Refusal } from './refusal.ts';

/** What a buyer pays with: a card pays at once, a delayed method some time after the session is complete. */
export type PayWith = 'card' | 'delayed';

const SHORTEST_SEC = 30 * 60;
const LONGEST_SEC = 24 * 60 * 60;
const MAX_REFERENCE_CHARS = 200;
const MAX_METADATA_CHARS = 500;
/** Eight digits, and twelve in rupiah (github.com/dj-stripe/dj-stripe/pull/1786). */
const MAX_AMOUNT = 99_999_999;
const MAX_AMOUNTS: Readonly<Record<string, number>> = { idr: 999_999_999_999 };

/** All that the stand-in knows of `Stripe.Checkout.SessionCreateParams`; Stripe refuses what it does not know, too. */
const PARAMS: readonly (keyof Stripe.Checkout.SessionCreateParams)[] = [
  'mode',
  'line_items',
  'client_reference_id',
  'metadata',
  'payment_intent_data',
  'allowed_payment_method_types',
  'adaptive_pricing',
  'allow_promotion_codes',
  'expires_at',
  'success_url',
  'cancel_url',
  'customer_email',
  'locale',
];

export class Sessions {
  readonly #books: Books;
  readonly #events: Events;
  readonly #money: Money;
  readonly #urlOf: (id: string) => string;

  constructor(books: Books, events: Events, money: Money, urlOf: (id: string) => string) {
    this.#books = books;
    this.#events = events;
    this.#money = money;
    this.#urlOf = urlOf;
  }

  create(form: Form, livemode: boolean): Stripe.Checkout.Session {
    const odd = Object.keys(form).find((name) => !PARAMS.some((known) => known === name));
    if (odd !== undefined)
      throw new Refusal(400, `Received unknown parameter: ${odd}`, { code: 'parameter_unknown', param: odd });
    const mode = textIn(form, 'mode');
    if (mode !== 'payment')
      throw new Refusal(400, 'Invalid mode: must be payment at the stand-in', { param: 'mode' });
    const successUrl = textIn(form, 'success_url');
    if (successUrl === undefined) throw required('success_url');
    const { amount, currency, title } = totalOf(formIn(form, 'line_items'));
    const id = newId(`cs_${livemode ? 'live' : 'test'}`);
    const session = blankSession({
      id,
      livemode,
      created: this.#books.nowSec,
      expires_at: this.#expiryOf(form),
      amount_subtotal: amount,
      amount_total: amount,
      currency,
      success_url: successUrl,
      cancel_url: textIn(form, 'cancel_url') ?? null,
      client_reference_id: referenceOf(form),
      metadata: metadataOf(form),
      allowed_payment_method_types: Object.values(textsIn(formIn(form, 'allowed_payment_method_types'))),
      url: this.#urlOf(id),
    });
    const intentMetadata = metadataOf(formIn(form, 'payment_intent_data'));
    this.#books.put('session', { id, created: session.created, session, intentMetadata, title });
    return session;
  }

  /** As it stands now: one whose time is over has expired. */
  find(id: string): StoredSession {
    const stored = this.#books.find('session', id);
    if (stored === undefined) throw missing('checkout.session', id, 'session');
    const isOver = stored.session.status === 'open' && stored.session.expires_at <= this.#books.nowSec;
    return isOver ? this.#end(stored) : stored;
  }

  list(): Stripe.Checkout.Session[] {
    return this.#books.list('session').map(({ id }) => this.find(id).session);
  }

  expire(id: string): Stripe.Checkout.Session {
    const stored = this.find(id);
    const { status } = stored.session;
    if (status !== 'open')
      throw new Refusal(
        400,
        `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of \`${status}\`.`,
      );
    return this.#end(stored).session;
  }

  /** The buyer pays on the page. */
  pay(id: string, payWith: PayWith = 'card'): Stripe.Checkout.Session {
    const stored = this.find(id);
    const { session } = stored;
    if (session.status !== 'open')
      throw new Refusal(400, `This Checkout Session has a status of \`${session.status}\`.`);
    const intent = blankIntent({
      amount: session.amount_total ?? 0,
      currency: session.currency ?? '',
      created: this.#books.nowSec,
      livemode: session.livemode,
      metadata: stored.intentMetadata,
      payment_method_types: session.payment_method_types,
    });
    this.#books.put('payment_intent', intent);
    const isPaid = payWith === 'card';
    const done = this.#change(stored, {
      status: 'complete',
      payment_status: isPaid ? 'paid' : 'unpaid',
      payment_intent: intent.id,
      url: null,
    });
    if (isPaid) this.#money.capture(intent);
    else this.#events.tell('payment_intent.processing', intent, session.livemode);
    this.#events.tell('checkout.session.completed', done.session, session.livemode);
    return done.session;
  }

  /** A delayed method comes to its end. */
  endDelayed(id: string, isPaid: boolean): Stripe.Checkout.Session {
    const stored = this.find(id);
    const { session } = stored;
    const intent = this.#books.find('payment_intent', String(session.payment_intent));
    if (intent === undefined || intent.status !== 'processing')
      throw new Refusal(400, 'This Checkout Session does not wait for its payment.');
    if (!isPaid) {
      const failed = { ...intent, status: 'requires_payment_method' as const };
      this.#books.put('payment_intent', failed);
      this.#events.tell('payment_intent.payment_failed', failed, session.livemode);
      this.#events.tell('checkout.session.async_payment_failed', session, session.livemode);
      return session;
    }
    this.#money.capture(intent);
    const done = this.#change(stored, { payment_status: 'paid' });
    this.#events.tell('checkout.session.async_payment_succeeded', done.session, session.livemode);
    return done.session;
  }

  #end(stored: StoredSession): StoredSession {
    const ended = this.#change(stored, { status: 'expired', url: null });
    this.#events.tell('checkout.session.expired', ended.session, ended.session.livemode);
    return ended;
  }

  #change(stored: StoredSession, change: Partial<Stripe.Checkout.Session>): StoredSession {
    const changed = { ...stored, session: { ...stored.session, ...change } };
    this.#books.put('session', changed);
    return changed;
  }

  #expiryOf(form: Form): number {
    const { nowSec } = this.#books;
    const at = wholeIn(form, 'expires_at') ?? nowSec + LONGEST_SEC;
    const wrong =
      at < nowSec + SHORTEST_SEC
        ? 'at least 30 minutes'
        : at > nowSec + LONGEST_SEC
          ? 'less than 24 hours'
          : undefined;
    if (wrong === undefined) return at;
    throw new Refusal(400, `The \`expires_at\` timestamp must be ${wrong} from Checkout Session creation.`, {
      param: 'expires_at',
    });
  }
}

function totalOf(items: Form): { amount: number; currency: string; title: string } {
  const lines = Object.values(items).filter((line) => typeof line === 'object');
  if (lines.length === 0) throw required('line_items');
  let amount = 0;
  let currency = '';
  const titles: string[] = [];
  for (const [at, line] of lines.entries()) {
    const price = formIn(line, 'price_data');
    const unit = wholeIn(price, 'unit_amount', `line_items[${at}][price_data][unit_amount]`);
    const quantity = wholeIn(line, 'quantity', `line_items[${at}][quantity]`) ?? 1;
    const title = textIn(formIn(price, 'product_data'), 'name');
    if (unit === undefined) throw required(`line_items[${at}][price_data][unit_amount]`);
    if (title === undefined) throw required(`line_items[${at}][price_data][product_data][name]`);
    amount += unit * quantity;
    currency = textIn(price, 'currency') ?? '';
    titles.push(quantity === 1 ? title : `${quantity} × ${title}`);
  }
  if (!/^[a-z]{3}$/.test(currency))
    throw new Refusal(400, `Invalid currency: ${currency}`, { param: 'currency' });
  if (amount < 1 || amount > (MAX_AMOUNTS[currency] ?? MAX_AMOUNT))
    throw new Refusal(400, `Invalid amount: ${amount}`, {
      code: 'parameter_invalid_integer',
      param: 'unit_amount',
    });
  return { amount, currency, title: titles.join(', ') };
}

function referenceOf(form: Form): string | null {
  const reference = textIn(form, 'client_reference_id') ?? null;
  if (reference === null || reference.length <= MAX_REFERENCE_CHARS) return reference;
  throw new Refusal(400, `Invalid string: must be at most ${MAX_REFERENCE_CHARS} characters`, {
    param: 'client_reference_id',
  });
}

function metadataOf(form: Form): Stripe.Metadata {
  const metadata = textsIn(formIn(form, 'metadata'));
  const long = Object.entries(metadata).find(([, value]) => value.length > MAX_METADATA_CHARS);
  if (long === undefined) return metadata;
  throw new Refusal(400, `Metadata values can have up to ${MAX_METADATA_CHARS} characters`, {
    param: `metadata[${long[0]}]`,
  });
}
