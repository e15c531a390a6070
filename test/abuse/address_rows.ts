// What a stranger tries from one address, one row an attack. strangers_addresses.test.ts runs them.

import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { DEFAULT_LIMITS } from '../../src/server/address_limits.ts';
import type { ServerOptions } from '../../src/server/server.ts';
import type { Rate } from '../../src/server/token_buckets.ts';
import * as callSite from '../calls/support.ts';
import { type Answer, ask, bearer, claim, token } from '../server/support.ts';
import { paymentEvent, send as sendEvent } from '../webhook/world.ts';

export const CLAIMS = 1_000;
export const DELIVERIES = 300;
export const GUESSES = 60;
export const AT_ONCE = 50;
export const HEX = 16;

/** How often each answer came, by "status code". */
export type Answers = Map<string, number>;

export interface Place {
  readonly url: string;
  readonly port: number;
  readonly pool: string;
}

interface Row {
  readonly attack: string;
  readonly settings?: Partial<ServerOptions>;
  /** The guard switched off, or a setting that the documents warn of. */
  readonly off: Partial<ServerOptions>;
  run(place: Place): Promise<Answers>;
  /** What gets through, at most so many and then so many a second. */
  readonly taken: string;
  readonly limit: Rate;
  readonly refused: string;
}

export const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

function tally(answers: readonly Pick<Answer, 'status' | 'json'>[]): Answers {
  const counts: Answers = new Map();
  for (const { status, json } of answers) {
    const key = [status, json?.error?.code].filter(Boolean).join(' ');
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** `number` requests, some at a time. */
export async function flood(number: number, one: (index: number) => Promise<Answer>): Promise<Answers> {
  return tally(await Promise.all(Array.from({ length: number }, (_, index) => one(index))));
}

export const claimAs =
  (headersOf: (index: number) => Record<string, string>) =>
  ({ url, pool }: Place): Promise<Answers> =>
    flood(CLAIMS, (index) => claim(url, pool, { user_id: `made-up-${index}` }, headersOf(index), agent));

export const from = (address: string) => ({ 'x-forwarded-for': address });
const byte = (number: number) => (Math.floor(number) % 250) + 1;
export const BEHIND_A_PROXY = { proxy: { trustedProxies: 1 } };
const NO_CLAIM_LIMIT = { limits: { claims: false } } as const;
const claimRow = { taken: '201', limit: DEFAULT_LIMITS.claims, refused: '429 rate_limited' };
const deliveryRow = {
  taken: '401 bad_signature',
  limit: DEFAULT_LIMITS.deliveries,
  refused: '429 rate_limited',
};
const NO_DELIVERY_LIMIT = { limits: { deliveries: false } } as const;
const guessRow = {
  taken: '401 auth_required',
  limit: DEFAULT_LIMITS.signIns,
  refused: '429 too_many_attempts',
  off: { limits: { signIns: false } },
} as const;
export const guess = (url: string, headers: Record<string, string> = {}) =>
  ask(`${url}/admin/session`, { method: 'POST', headers, body: { key: 'guess' }, agent });

export const ROWS: readonly Row[] = [
  {
    ...claimRow,
    attack: '1,000 made-up ids from one address',
    off: NO_CLAIM_LIMIT,
    run: claimAs(() => ({})),
  },
  {
    ...claimRow,
    attack: 'a made-up X-Forwarded-For each, and no proxy is declared',
    off: BEHIND_A_PROXY,
    run: claimAs((index) => from(`198.51.${byte(index / 250)}.${byte(index)}`)),
  },
  {
    ...claimRow,
    attack: 'a port of its own each, as some proxies write it',
    settings: BEHIND_A_PROXY,
    off: NO_CLAIM_LIMIT,
    run: claimAs((index) => from(`203.0.113.9:${index + 1}`)),
  },
  {
    ...claimRow,
    attack: 'a made-up address each, left of what the declared proxy wrote',
    settings: BEHIND_A_PROXY,
    off: { proxy: { trustedProxies: 2 } },
    run: claimAs((index) => from(`198.51.${byte(index / 250)}.${byte(index)}, 203.0.113.9`)),
  },
  {
    ...claimRow,
    attack: 'an IPv6 address of its own each, out of one /64',
    settings: BEHIND_A_PROXY,
    off: NO_CLAIM_LIMIT,
    run: claimAs((index) => from(`2001:db8:1:2:${index.toString(HEX)}::1`)),
  },
  {
    ...claimRow,
    attack: 'one IPv4 address in four spellings',
    settings: BEHIND_A_PROXY,
    off: NO_CLAIM_LIMIT,
    run: claimAs((index) => {
      const spellings = ['203.0.113.9', '::ffff:203.0.113.9', '::ffff:cb00:7109', '[::ffff:203.0.113.9]:443'];
      return from(spellings[index % spellings.length] ?? '');
    }),
  },
  {
    ...claimRow,
    attack: 'what the proxy wrote is not an address',
    settings: BEHIND_A_PROXY,
    off: NO_CLAIM_LIMIT,
    run: claimAs((index) => from(`unknown-${index}`)),
  },
  {
    ...claimRow,
    attack: 'a token of its own each, of users that all sign in at one address',
    off: NO_CLAIM_LIMIT,
    async run({ url, pool }) {
      const tokens = await Promise.all(
        Array.from({ length: CLAIMS }, (_, index) => token({ role: 'authenticated', sub: `bot-${index}` })),
      );
      return flood(CLAIMS, (index) => claim(url, pool, {}, bearer(tokens[index] ?? ''), agent));
    },
  },
  {
    ...claimRow,
    attack: 'the anon key that every page has',
    off: NO_CLAIM_LIMIT,
    async run(place) {
      const anon = bearer(await token({ role: 'anon' }));
      return claimAs(() => anon)(place);
    },
  },
  {
    ...claimRow,
    attack: 'the checkout of 1,000 made-up claims',
    taken: '404 unknown_claim',
    off: NO_CLAIM_LIMIT,
    run: ({ url }) =>
      flood(CLAIMS, () => ask(`${url}/v1/claims/${randomUUID()}/checkout`, { method: 'POST', agent })),
  },
  {
    ...guessRow,
    attack: "guessing a scanner's key at the entrance",
    run: ({ url }) =>
      flood(GUESSES, () =>
        ask(`${url}/v1/tickets/check`, {
          method: 'POST',
          headers: bearer('guess'),
          body: { token: 'x' },
          agent,
        }),
      ),
  },
  {
    ...guessRow,
    attack: 'guessing the admin key at the sign-in',
    run: ({ url }) => flood(GUESSES, () => guess(url)),
  },
  {
    ...guessRow,
    attack: 'guessing it as Bearer, at the claim routes and elsewhere in turn',
    run: ({ url, pool }) =>
      flood(GUESSES, (index) => {
        const paths = ['/admin/session', '/admin/pools', '/v1/claims/11111111-1111-4111-8111-111111111111'];
        if (index % 4 === 3) return claim(url, pool, { user_id: 'x' }, bearer('guess'), agent);
        return ask(url + paths[index % 4], { headers: bearer('guess'), agent });
      }),
  },
  {
    ...guessRow,
    attack: 'guessing it behind a proxy that writes ports',
    settings: BEHIND_A_PROXY,
    run: ({ url }) => flood(GUESSES, (index) => guess(url, from(`203.0.113.9:${index + 1}`))),
  },
  {
    ...deliveryRow,
    attack: 'webhooks without a signature',
    off: NO_DELIVERY_LIMIT,
    run: ({ url }) =>
      flood(DELIVERIES, () => ask(`${url}/webhooks/stripe`, { method: 'POST', body: {}, agent })),
  },
  {
    ...deliveryRow,
    attack: 'webhooks signed with a guessed secret',
    off: NO_DELIVERY_LIMIT,
    run: ({ url }) =>
      flood(DELIVERIES, (index) =>
        sendEvent({
          url: `${url}/webhooks/stripe`,
          provider: 'stripe',
          body: paymentEvent(`evt_guess_${index}`),
          secret: 'whsec_guess',
          agent,
        }),
      ),
  },
  {
    ...deliveryRow,
    attack: 'call events signed with a guessed secret, for sites that exist and sites that do not',
    off: NO_DELIVERY_LIMIT,
    run: ({ url }) =>
      flood(DELIVERIES, (index) => {
        const site = index % 2 === 0 ? callSite.SITE : `made-up-${index}`;
        return callSite.post(
          url,
          callSite.signedRequest(callSite.callBody(), { site, secret: 'guess' }),
          agent,
        );
      }),
  },
  {
    ...deliveryRow,
    attack: 'made-up call events of a site that need not sign',
    taken: '200',
    off: NO_DELIVERY_LIMIT,
    run: ({ url, pool }) =>
      flood(DELIVERIES, (index) => {
        const headers = { 'x-ops-site': callSite.OPEN_SITE };
        const body = callSite.callBody({ payload: { pool, index } });
        return ask(`${url}/call-events`, { method: 'POST', headers, body, agent });
      }),
  },
];
