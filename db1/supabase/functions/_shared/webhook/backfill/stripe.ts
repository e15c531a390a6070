// Stripe's own list of the events it sent: GET /v1/events, for 30 days.

import { stringifyMarked } from '../../digits.ts';
import { utf8 } from '../bytes.ts';
import { isObject, type JsonObject } from '../read.ts';
import { type Ask, SourceError } from './ask.ts';
import type { Fetched, Source, Stretch } from './source.ts';

/**
 * In this version the part of a hold that was let go does not stand among the refunds. The version of the account, which
 * answers would have otherwise, can be any.
 */
export const API_VERSION = '2025-03-31.basil';
/** The most that Stripe gives. */
const PAGE_EVENTS = 100;
/** Secret and restricted ones. The secret of another service must not go to Stripe because its name was mistaken. */
const KEY = /^[rs]k_(live|test)_\w+$/;
const ACCOUNT = /^acct_\w+$/;

const secondsOf = (time: Date): string => String(time.getTime() / 1_000);

/** A list of Stripe's, newest first, a page at a time. `starting_after` keeps its place while the list grows in front. */
export async function* listPages(
  ask: Ask,
  path: string,
  { since, until }: Stretch,
  account: string | undefined,
  filter: Readonly<Record<string, string>> = {},
): AsyncGenerator<JsonObject[]> {
  const headers: Record<string, string> = account === undefined ? {} : { 'stripe-account': account };
  let after: string | undefined;
  for (;;) {
    const query = new URLSearchParams({
      limit: String(PAGE_EVENTS),
      'created[gte]': secondsOf(since),
      'created[lt]': secondsOf(until),
      ...filter,
      ...(after !== undefined && { starting_after: after }),
    });
    const { data, has_more: hasMore } = await ask(`${path}?${query}`, headers);
    if (!Array.isArray(data))
      throw new SourceError(`Stripe answers ${path} without a list`, 'is it the API of Stripe?');
    const objects = data.filter(isObject);
    yield objects;
    const last = objects.at(-1)?.id;
    if (hasMore !== true || typeof last !== 'string') return;
    after = last;
  }
}

/** The accounts to ask for: the key's own, and those that are connected to it and named by the endpoint. */
export function accountsOf(accounts: readonly string[]): (string | undefined)[] {
  return [undefined, ...accounts.filter((account) => ACCOUNT.test(account))];
}

const FILTERS: readonly Readonly<Record<string, string>>[] = [{ delivery_success: 'false' }, {}];

/** Undelivered events first: they are what is missing, if anything is. */
async function* list(ask: Ask, stretch: Stretch, accounts: readonly string[]): AsyncGenerator<Fetched[]> {
  for (const account of accountsOf(accounts)) {
    const seen = new Set<unknown>();
    for (const filter of FILTERS) {
      for await (const events of listPages(ask, '/v1/events', stretch, account, filter)) {
        const unseen = events.filter(({ id }) => !seen.has(id));
        if ('delivery_success' in filter) for (const { id } of events) seen.add(id);
        yield unseen.map((event) => fetched(event, account));
      }
    }
  }
}

/** A delivery says whose account it is about; an answer to a question about that account need not. */
function fetched(event: JsonObject, account: string | undefined): Fetched {
  const body = account === undefined || event.account !== undefined ? event : { ...event, account };
  return { method: 'POST', url: '', headers: {}, body: utf8(stringifyMarked(body)) };
}

export const stripe: Source = {
  title: 'Stripe',
  keyName: 'STRIPE_API_KEY',
  urlVariable: 'STRIPE_API_URL',
  url: 'https://api.stripe.com',
  rights:
    'the rights to read events, charges and disputes, and to connected accounts where the endpoint names some',
  keepsDays: 30,
  access(key, { name, livemode, accounts }, keyName) {
    const [, kind] = KEY.exec(key) ?? [];
    if (kind === undefined)
      throw new SourceError(
        `${keyName} is not a key of Stripe`,
        'its value begins with rk_live_ or rk_test_',
      );
    if (livemode !== 'both' && livemode !== kind)
      throw new SourceError(
        `${keyName} is a ${kind} key, and the endpoint ${name} takes ${livemode} events`,
        `name the other key: sluice webhooks endpoints change ${name} --api-key-name NAME`,
      );
    return { headers: { authorization: `Bearer ${key}` }, accounts };
  },
  list,
};
