// Stands in for Stripe's lists of events and charges. Answers are as documented at docs.stripe.com/api (events/list, charges/list,
// pagination, errors) and have the types of the package `stripe`.

import type Stripe from 'stripe';
import { type ApiAnswer, type ApiRequest, ApiServer } from './server.ts';

export const DAY_SEC = 24 * 60 * 60;
/** As long as Stripe has events. */
const KEPT_DAYS = 30;
const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 10;
const OWN_ACCOUNT = 'acct_own';

/** As a delivery brings it. */
export type SentEvent = Pick<Stripe.EventBase, 'id' | 'created' | 'livemode'> & {
  type: string;
  account?: string;
  api_version?: string | null;
  data: { object: object };
};
export type ListedCharge = Pick<
  Stripe.Charge,
  | 'id'
  | 'object'
  | 'amount'
  | 'amount_captured'
  | 'amount_refunded'
  | 'currency'
  | 'created'
  | 'payment_intent'
  | 'status'
>;
type Listed = { id: string; created: number };

export interface StripeKey {
  /** `event_read`, `charge_read`. */
  rights: readonly string[];
  /** Connected accounts that it may ask for. */
  accounts?: readonly string[];
}

export class StripeStandIn {
  readonly server = new ApiServer((request) => this.#answer(request));
  readonly keys = new Map<string, StripeKey>();
  /** Newest last, by account; our own is ''. */
  readonly #events = new Map<string, SentEvent[]>();
  readonly #charges = new Map<string, ListedCharge[]>();
  readonly #delivered = new Set<string>();

  static async start(keys: Record<string, StripeKey>): Promise<StripeStandIn> {
    const standIn = new StripeStandIn();
    for (const [key, may] of Object.entries(keys)) standIn.keys.set(key, may);
    await standIn.server.listen();
    return standIn;
  }

  get url(): string {
    return this.server.url;
  }

  send(event: SentEvent): void {
    listOf(this.#events, event.account ?? '').push(event);
  }

  charge(charge: ListedCharge, account = ''): void {
    listOf(this.#charges, account).push(charge);
  }

  /** Every webhook that wanted it has it. */
  markDelivered(eventId: string): void {
    this.#delivered.add(eventId);
  }

  #answer({ url, headers }: ApiRequest): ApiAnswer {
    const account = String(headers['stripe-account'] ?? '');
    const refusal = this.#refusal(String(headers.authorization ?? ''), url.pathname, account);
    if (refusal !== undefined) return refusal;
    const [, list, id] = /^\/v1\/(events|charges)(?:\/(\w+))?$/.exec(url.pathname) ?? [];
    if (list === undefined) return error(404, `Unrecognized request URL (GET: ${url.pathname}).`);
    const objects = list === 'events' ? this.#listedEvents(account, url) : listOf(this.#charges, account);
    if (id === undefined) return page(url, objects);
    const found = objects.find((object) => object.id === id);
    return found ? { status: 200, body: found } : missing(list, id);
  }

  #listedEvents(account: string, url: URL): Listed[] {
    const oldest = Date.now() / 1_000 - KEPT_DAYS * DAY_SEC;
    const wanted = url.searchParams.get('delivery_success');
    return listOf(this.#events, account)
      .filter(({ created }) => created >= oldest)
      .filter(({ id }) => wanted === null || this.#delivered.has(id) === (wanted === 'true'))
      .map((event) => this.#rendered(event));
  }

  /** Not the bytes of a delivery: other order, other spaces, and what changes meanwhile. */
  #rendered({ account: _, data, ...event }: SentEvent): Omit<Stripe.EventBase, 'type'> & { type: string } {
    return {
      object: 'event',
      api_version: null,
      pending_webhooks: this.#delivered.has(event.id) ? 0 : 1,
      request: { id: null, idempotency_key: null },
      ...event,
      data,
    };
  }

  #refusal(authorization: string, path: string, account: string): ApiAnswer | undefined {
    const key = authorization.replace(/^Bearer /, '');
    const may = this.keys.get(key);
    const shown = `${key.slice(0, 8)}********${key.slice(-4)}`;
    if (may === undefined) return error(401, `Invalid API Key provided: ${shown}`);
    const right = path.startsWith('/v1/events') ? 'event_read' : 'charge_read';
    if (!may.rights.includes(right))
      return error(
        403,
        `The provided key '${shown}' does not have the required permissions for this endpoint on account '${account || OWN_ACCOUNT}'. Having the 'rak_${right}' permission would allow this request to continue.`,
      );
    if (account === '' || may.accounts?.includes(account)) return undefined;
    return error(
      403,
      `The provided key '${shown}' does not have access to account '${account}' (or that account does not exist). Application access may have been revoked.`,
      { code: 'account_invalid' },
    );
  }
}

function listOf<Item>(lists: Map<string, Item[]>, account: string): Item[] {
  const known = lists.get(account) ?? [];
  lists.set(account, known);
  return known;
}

/** Newest first. */
function page(url: URL, objects: readonly Listed[]): ApiAnswer {
  const query = url.searchParams;
  const limit = Number(query.get('limit') ?? LIMIT_DEFAULT);
  if (!(limit >= 1 && limit <= LIMIT_MAX))
    return error(400, `This value must be less than or equal to ${LIMIT_MAX}.`, { param: 'limit' });
  const [gte, lt] = ['created[gte]', 'created[lt]'].map((name) => query.get(name));
  const matching = objects
    .map((object, at) => ({ object, at }))
    .sort((a, b) => b.object.created - a.object.created || b.at - a.at)
    .map(({ object }) => object)
    .filter(({ created }) => created >= Number(gte ?? 0) && created < Number(lt ?? Number.POSITIVE_INFINITY));
  const after = query.get('starting_after');
  const at = after === null ? 0 : matching.findIndex(({ id }) => id === after) + 1;
  if (after !== null && at === 0) return missing(url.pathname.slice('/v1/'.length), after);
  const data = matching.slice(at, at + limit);
  const body: Stripe.ApiList<Listed> = {
    object: 'list',
    data,
    has_more: at + limit < matching.length,
    url: url.pathname,
  };
  return { status: 200, body };
}

function missing(list: string, id: string): ApiAnswer {
  return error(404, `No such ${list.replace(/s$/, '')}: '${id}'`, { code: 'resource_missing', param: 'id' });
}

function error(status: number, message: string, more: Record<string, string> = {}): ApiAnswer {
  return { status, body: { error: { message, type: 'invalid_request_error', ...more } } };
}

/** docs.stripe.com/rate-limits */
export const RATE_LIMITED: ApiAnswer = {
  status: 429,
  headers: { 'stripe-rate-limited-reason': 'global-rate', 'retry-after': '0' },
  body: {
    error: {
      message:
        'Request rate limit exceeded. Learn more about rate limits here https://stripe.com/docs/rate-limits.',
      type: 'invalid_request_error',
      code: 'rate_limit',
    },
  },
};

export const SERVER_ERROR: ApiAnswer = {
  status: 500,
  body: { error: { message: 'An unknown error occurred', type: 'api_error' } },
};
