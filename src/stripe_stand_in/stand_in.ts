// Stands in for Stripe: sessions with a page to pay on, payments, refunds, events with signed deliveries, idempotency keys, rights
// of keys, and the lists that a backfill asks for. A real HTTP server on loopback with its own clock and its own books.
// Answers are as documented at docs.stripe.com/api and have the types of the package `stripe`.

import type Stripe from 'stripe';
import { type ApiAnswer, type ApiRequest, ApiServer } from './api_server.ts';
import { Books, type ListedCharge, type SentEvent } from './books.ts';
import { controlRoutes } from './control.ts';
import { Events, type WebhookTarget } from './events.ts';
import { parseForm } from './form.ts';
import { Idempotency } from './idempotency.ts';
import { Money } from './money.ts';
import { PAY_PAGE, payPage } from './pay_page.ts';
import { missing, page, Refusal } from './refusal.ts';
import { refusalOfKey, type StripeKey } from './rights.ts';
import { Sessions } from './sessions.ts';
import { Switches } from './switches.ts';

export const DAY_SEC = 24 * 60 * 60;
/** As long as Stripe has events. */
const KEPT_DAYS = 30;

export interface StandInOptions {
  keys: Record<string, StripeKey>;
  /** Where events are delivered to; nowhere where left out. */
  webhook?: WebhookTarget;
  /** A file that keeps the books over restarts. */
  journal?: string;
  /** A free one where left out. */
  port?: number;
}

export class StripeStandIn {
  readonly server = new ApiServer((request) => this.#serve(request));
  readonly keys = new Map<string, StripeKey>();
  readonly books: Books;
  readonly events: Events;
  readonly money: Money;
  readonly sessions: Sessions;
  readonly switches: Switches;
  readonly #idempotency: Idempotency;

  constructor({ keys, webhook, journal }: StandInOptions) {
    for (const [key, may] of Object.entries(keys)) this.keys.set(key, may);
    this.books = new Books(journal);
    this.events = new Events(this.books, webhook);
    this.money = new Money(this.books, this.events);
    this.sessions = new Sessions(this.books, this.events, this.money, (id) => `${this.url}${PAY_PAGE}/${id}`);
    this.#idempotency = new Idempotency(this.books);
    this.switches = new Switches(this.server, this.books, this.events);
  }

  static async start(options: StandInOptions): Promise<StripeStandIn> {
    const standIn = new StripeStandIn(options);
    await standIn.server.listen(options.port);
    standIn.events.start();
    return standIn;
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.events.stop();
  }

  get url(): string {
    return this.server.url;
  }

  send(event: SentEvent): void {
    this.books.put('event', event, event.account ?? '');
  }

  charge(charge: ListedCharge, account = ''): void {
    this.books.put('charge', charge, account);
  }

  /** Every webhook that wanted it has it. */
  markDelivered(eventId: string): void {
    this.books.put('delivery', { id: eventId, created: this.books.nowSec, tries: 1, state: 'delivered' });
  }

  #serve(request: ApiRequest): ApiAnswer | Promise<ApiAnswer> {
    try {
      return this.books.together(() => this.#answer(request));
    } catch (error) {
      if (error instanceof Refusal) return error.answer;
      throw error;
    }
  }

  #answer(request: ApiRequest): ApiAnswer | Promise<ApiAnswer> {
    const { url, headers, method } = request;
    if (url.pathname.startsWith(PAY_PAGE)) return payPage(request, this.sessions);
    const account = String(headers['stripe-account'] ?? '');
    const key = String(headers.authorization ?? '').replace(/^Bearer /, '');
    const refusal = refusalOfKey(this.keys.get(key), key, method, url.pathname, account);
    if (refusal !== undefined) throw refusal;
    const controlled = controlRoutes(request, this);
    if (controlled !== undefined) return controlled;
    if (method === 'GET') return this.#read(url, account);
    const done = () => this.#change(request, !/_test_/.test(key));
    return this.#idempotency.once(request, done, this.switches.takeFailure());
  }

  #read(url: URL, account: string): ApiAnswer {
    const { pathname, searchParams: query } = url;
    const [, list, id] =
      /^\/v1\/(events|charges|disputes|checkout\/sessions|payment_intents|refunds)(?:\/(\w+))?$/.exec(
        pathname,
      ) ?? [];
    const found = (body: unknown): ApiAnswer => ({ status: 200, body });
    const wanted = (name: string, value: unknown) => query.get(name) === null || query.get(name) === value;
    if (list === 'checkout/sessions') {
      if (id !== undefined) return found(this.sessions.find(id).session);
      const matching = this.sessions
        .list()
        .filter((one) => wanted('status', one.status) && wanted('payment_intent', one.payment_intent));
      return page(url, matching, 'checkout.session', ['status', 'payment_intent']);
    }
    if (list === 'payment_intents' && id !== undefined) return found(this.money.findIntent(id));
    if (list === 'refunds') {
      const refunds = this.books
        .list('refund')
        .filter((one) => wanted('payment_intent', one.payment_intent) && wanted('charge', one.charge));
      if (id === undefined) return page(url, refunds, 'refund', ['payment_intent', 'charge']);
      return found(refunds.find((one) => one.id === id) ?? raise(missing('refund', id)));
    }
    if (list === 'events' || list === 'charges' || list === 'disputes') {
      const what = list.slice(0, -1) as 'event' | 'charge' | 'dispute';
      const objects = what === 'event' ? this.#listedEvents(account, url) : this.books.list(what, account);
      if (id === undefined)
        return page(url, objects, what, list === 'events' ? ['delivery_success', 'type'] : []);
      return found(objects.find((object) => object.id === id) ?? raise(missing(what, id)));
    }
    throw unknownPath('GET', pathname);
  }

  #change({ url: { pathname }, method, body }: ApiRequest, livemode: boolean): ApiAnswer {
    const form = parseForm(body);
    const done = (made: unknown): ApiAnswer => ({ status: 200, body: made });
    const [, expiring] = /^\/v1\/checkout\/sessions\/(\w+)\/expire$/.exec(pathname) ?? [];
    if (method === 'POST' && expiring !== undefined) return done(this.sessions.expire(expiring));
    if (method === 'POST' && pathname === '/v1/checkout/sessions')
      return done(this.sessions.create(form, livemode));
    if (method === 'POST' && pathname === '/v1/refunds') return done(this.money.refund(form));
    if (method === 'POST' && pathname === '/v1/payment_intents')
      return done(this.money.createIntent(form, livemode));
    throw unknownPath(method, pathname);
  }

  #listedEvents(account: string, url: URL) {
    const oldest = this.books.nowSec - KEPT_DAYS * DAY_SEC;
    const wanted = url.searchParams.get('delivery_success');
    const type = url.searchParams.get('type');
    return this.books
      .list('event', account)
      .filter((event) => event.created >= oldest && (type === null || event.type === type))
      .filter(({ id }) => wanted === null || this.events.isDelivered(id) === (wanted === 'true'))
      .map((event) => rendered(event, this.events.isDelivered(event.id)));
  }
}

/** Not the bytes of a delivery: other order, other spaces, and what changes meanwhile. */
function rendered(
  { account: _, data, ...event }: SentEvent,
  isDelivered: boolean,
): Omit<Stripe.EventBase, 'type'> & { type: string } {
  return {
    object: 'event',
    api_version: null,
    pending_webhooks: isDelivered ? 0 : 1,
    request: { id: null, idempotency_key: null },
    ...event,
    data,
  };
}

function unknownPath(method: string, path: string): Refusal {
  return new Refusal(404, `Unrecognized request URL (${method}: ${path}).`);
}

function raise(refusal: Refusal): never {
  throw refusal;
}
