// What a stranger tries against another buyer's claims, limits and tickets, one row an attack: findings S2 to S5 and S7.
// strangers_claims.test.ts runs them.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { callRest } from '../access/rest.ts';
import { type Answer, ask, claim } from '../server/support.ts';
import { WITHOUT_A_TRACE } from '../support/lost_tickets.ts';
import type { TestPostgrest } from '../support/postgrest.ts';
import type { Session } from '../support/sessions.ts';
import {
  FORM_OF_IDS,
  GUESS,
  type Guard,
  inFunctions,
  NAMESPACE_OF_LIMITS,
  NO_STATISTICS,
  OWNER_OF_REQUESTS,
  RIGHT_GUESS,
  VISIBLE_TICKETS,
  WAY_PAST_THE_SERVER,
} from './claim_guards.ts';

export const VICTIM = 'a0000000-0000-4000-8000-000000000001';
const SECRET = 'the-secret-of-the-victim';

export interface Place {
  readonly url: string;
  /** A pool of its own for each try. */
  readonly pool: string;
  readonly db1: Session;
  readonly db2: Session;
  readonly rest: Readonly<Record<'db1' | 'db2', TestPostgrest>>;
  /** The victim's token, and that of an anonymous sign-in. */
  readonly victim: Record<string, string>;
  readonly guest: Record<string, string>;
}

export interface Attack {
  readonly finding: string;
  readonly name: string;
  readonly rules?: Record<string, unknown>;
  /** What came of it, in a word or two. */
  attack(place: Place): Promise<string>;
  /** The answer while the guard is there. */
  readonly refused: string;
  /** Takes the guard away: in the database, or by other rules of the pool. */
  readonly guard: Guard | { readonly rules: Record<string, unknown> };
  readonly succeeds: string;
}

const said = ({ status, json }: Answer): string => `${status} ${json.error?.code ?? json.status}`;

/** A claim by the API of the database, as anyone with the public key makes it. */
async function byRpc({ rest, pool }: Place, user: string): Promise<string> {
  const { status, code } = await callRest(rest.db1, {
    method: 'POST',
    path: 'rpc/claim_resource_and_queue',
    body: { p_pool_id: pool, p_user_id: user },
  });
  return code === undefined ? 'claimed' : `${status} ${code}`;
}

/** The pool's claims become tickets, as their messages say. */
async function carry({ db1, db2, pool }: Place): Promise<void> {
  const messages = await db1.rows<{ message: unknown }>(
    `select message from pgmq.q_intake_queue where message ->> 'pool_id' = $1`,
    [pool],
  );
  for (const { message } of messages) await db2.rows('select public.finalize_transaction($1)', [message]);
}

const ofVictim = { user_id: VICTIM, request_id: 'order-1' };

const PAID = {
  confirm_by: 'payment',
  price: 700,
  currency: 'eur',
  payment_tenant: 'stripe',
  hold_sec: 600,
};

/** Seats held with a secret, and the page where they are paid for. */
async function goneToPay(place: Place): Promise<string> {
  const own = await madeBy(place, { ...ofVictim, secret: SECRET });
  await place.db1.rows(
    `select public.begin_checkout(c.claim_id, c.user_id, 'http://127.0.0.1', c.secret_hash)
     from public.claims c where c.claim_id = $1`,
    [own],
  );
  await place.db1.rows(`select public.checkout_created($1, 1, $2, 'https://pay.example.com')`, [
    own,
    `cs_${own}`,
  ]);
  return own;
}

async function madeBy(place: Place, body: unknown, headers = {}): Promise<string> {
  const { status, json } = await claim(place.url, place.pool, body, headers);
  assert.equal(status, 201);
  return json.claim_id;
}

export const ATTACKS: Attack[] = [
  {
    finding: 'S2',
    name: "spends a signed-in user's limit under its name",
    rules: { max_per_user: 1 },
    attack: async (place) => {
      await madeBy(place, { user_id: VICTIM });
      return said(await claim(place.url, place.pool, {}, place.victim));
    },
    refused: '201 queued',
    guard: NAMESPACE_OF_LIMITS,
    succeeds: '409 limit',
  },
  {
    finding: 'S2',
    name: "spends a signed-in user's limit by the API of the database",
    rules: { max_per_user: 1 },
    attack: async (place) => {
      await byRpc(place, VICTIM);
      return said(await claim(place.url, place.pool, {}, place.victim));
    },
    refused: '201 queued',
    guard: NAMESPACE_OF_LIMITS,
    succeeds: '409 limit',
  },
  {
    finding: 'S2',
    name: "plants a ticket in a signed-in user's list",
    attack: async (place) => {
      await madeBy(place, { user_id: VICTIM });
      await carry(place);
      const { db2 } = place.rest;
      const { body } = await callRest(db2, {
        path: `confirmed_tickets?pool_id=eq.${place.pool}`,
        token: await db2.token('authenticated', VICTIM),
      });
      return `${(body as unknown[]).length} tickets`;
    },
    refused: '0 tickets',
    guard: VISIBLE_TICKETS,
    succeeds: '1 tickets',
  },
  {
    finding: 'S3',
    name: 'repeats the request of a claim with a secret',
    attack: async (place) => {
      const own = await madeBy(place, { ...ofVictim, secret: SECRET });
      const { json } = await claim(place.url, place.pool, ofVictim);
      return json.claim_id === own ? 'the claim of the victim' : 'a claim of its own';
    },
    refused: 'a claim of its own',
    guard: OWNER_OF_REQUESTS,
    succeeds: 'the claim of the victim',
  },
  {
    finding: 'S3',
    name: 'repeats the request with a guess of the secret',
    attack: async (place) => {
      const own = await madeBy(place, { ...ofVictim, secret: SECRET });
      const { json } = await claim(place.url, place.pool, { ...ofVictim, secret: GUESS });
      return json.claim_id === own ? 'the claim of the victim' : 'a claim of its own';
    },
    refused: 'a claim of its own',
    guard: OWNER_OF_REQUESTS,
    succeeds: 'the claim of the victim',
  },
  ...(['GET', 'DELETE'] as const).flatMap((method): Attack[] => [
    {
      finding: 'S3',
      name: `${method} of a claim with a secret, by its id and a guess`,
      attack: async ({ url, ...place }) => {
        const own = await madeBy({ url, ...place }, { ...ofVictim, secret: SECRET });
        const headers = { 'x-claim-secret': GUESS };
        return said(await ask(`${url}/v1/claims/${own}`, { method, headers }));
      },
      refused: '404 unknown_claim',
      guard: RIGHT_GUESS,
      succeeds: method === 'GET' ? '200 queued' : '200 released',
    },
    {
      finding: 'S3',
      name: `${method} of a claim with a secret, by its id and the user's own token`,
      attack: async ({ url, ...place }) => {
        const own = await madeBy({ url, ...place }, { ...ofVictim, secret: SECRET });
        const headers = { ...place.victim, 'x-claim-secret': GUESS };
        return said(await ask(`${url}/v1/claims/${own}`, { method, headers }));
      },
      refused: '404 unknown_claim',
      guard: RIGHT_GUESS,
      succeeds: method === 'GET' ? '200 queued' : '200 released',
    },
    {
      finding: 'S3',
      name: `${method} of a claim without a secret, by its id`,
      attack: async ({ url, ...place }) => {
        const own = await madeBy({ url, ...place }, ofVictim);
        const headers = { 'x-claim-secret': GUESS };
        const answer = await ask(`${url}/v1/claims/${own}`, { method, headers });
        return `${said(answer)} ${Object.keys(answer.json).slice(0, 2)}`;
      },
      refused: method === 'GET' ? '200 queued claim_id,status' : '403 not_yours error',
      guard: RIGHT_GUESS,
      succeeds: `200 ${method === 'GET' ? 'queued' : 'released'} claim_id,resource_id`,
    },
  ]),
  ...(['', "and the user's own token"] as const).map(
    (more): Attack => ({
      finding: 'S3',
      name: `asks for the page where another buyer pays, by the id of the claim, a guess ${more}`.trim(),
      rules: PAID,
      attack: async (place) => {
        const path = `/v1/claims/${await goneToPay(place)}/checkout`;
        const headers = { ...(more !== '' && place.victim), 'x-claim-secret': GUESS };
        const answer = await ask(place.url + path, { method: 'POST', headers });
        return answer.json.url ?? said(answer);
      },
      refused: '404 unknown_claim',
      guard: RIGHT_GUESS,
      succeeds: 'https://pay.example.com',
    }),
  ),
  {
    finding: 'S4',
    name: "takes a signed-in user's order number before them",
    attack: async (place) => {
      const taken = await madeBy(place, { user_id: 'mallory', request_id: 'order-1' });
      const { status, json } = await claim(place.url, place.pool, { request_id: 'order-1' }, place.victim);
      return json.claim_id === taken ? 'the claim of the stranger' : `${status} ${json.status}`;
    },
    refused: '201 queued',
    guard: OWNER_OF_REQUESTS,
    succeeds: 'the claim of the stranger',
  },
  {
    finding: 'S4',
    name: "takes a signed-in user's order number under their name",
    attack: async (place) => {
      const taken = await madeBy(place, ofVictim);
      const { status, json } = await claim(place.url, place.pool, { request_id: 'order-1' }, place.victim);
      return json.claim_id === taken ? 'the claim of the stranger' : `${status} ${json.status}`;
    },
    refused: '201 queued',
    guard: OWNER_OF_REQUESTS,
    succeeds: 'the claim of the stranger',
  },
  {
    finding: 'S4',
    name: 'asks whether an order number is taken',
    attack: async (place) => {
      await madeBy(place, { request_id: 'order-1' }, place.victim);
      return said(await claim(place.url, place.pool, ofVictim));
    },
    refused: '201 queued',
    guard: OWNER_OF_REQUESTS,
    succeeds: '200 queued',
  },
  ...(
    [
      ['a space before', ' ann'],
      ['a space after', 'ann '],
      ['a full-width letter', '\uff41nn'],
      ['a zero-width space', 'ann\u200b'],
      ['a control character', 'ann\u0007'],
      ['a turn of direction', '\u202eann'],
    ] as const
  ).map(
    ([what, user]): Attack => ({
      finding: 'S5',
      name: `is another user by ${what}`,
      attack: async (place) => {
        assert.equal(said(await claim(place.url, place.pool, { user_id: user })), '422 invalid_input');
        assert.equal(
          said(await claim(place.url, place.pool, { user_id: 'ann', request_id: user })),
          '422 invalid_input',
        );
        return byRpc(place, user);
      },
      refused: '400 SL001',
      guard: FORM_OF_IDS,
      succeeds: 'claimed',
    }),
  ),
  {
    finding: 'S5',
    name: 'buys as an anonymous sign-in where accounts are asked for',
    rules: { require_auth: true, allow_guests: false },
    attack: async ({ url, pool, guest }) => said(await claim(url, pool, {}, guest)),
    refused: '403 guests_refused',
    guard: { rules: { require_auth: true, allow_guests: true } },
    succeeds: '201 queued',
  },
  {
    finding: 'S5',
    name: 'buys as many users of one address as it likes',
    rules: { max_per_address: 2 },
    attack: async (place) => {
      const answers: string[] = [];
      for (const user of ['u1', 'u2', 'u3'])
        answers.push(said(await claim(place.url, place.pool, { user_id: user })));
      return answers.at(-1) ?? '';
    },
    refused: '409 address_limit',
    guard: { rules: { max_per_address: 3 } },
    succeeds: '201 queued',
  },
  {
    finding: 'S5',
    name: 'passes the limit of addresses by the API of the database',
    rules: { max_per_address: 2 },
    attack: (place) => byRpc(place, 'mallory'),
    refused: '400 SL017',
    guard: WAY_PAST_THE_SERVER,
    succeeds: 'claimed',
  },
  {
    finding: 'S5',
    name: 'passes the challenge by the API of the database',
    rules: { challenge_difficulty: 1000 },
    attack: (place) => byRpc(place, 'mallory'),
    refused: '400 SL017',
    guard: inFunctions('db1', [
      'intake.gate_for(intake.pool_gates, intake.claim_request)',
      'when p_request.trusted then',
      'when true then',
    ]),
    succeeds: 'claimed',
  },
  {
    finding: 'S5',
    name: 'leaves the challenge out',
    rules: { challenge_difficulty: 1000 },
    attack: async ({ url, pool }) => said(await claim(url, pool, { user_id: 'mallory' })),
    refused: '403 challenge_required',
    guard: inFunctions('db1', [
      'intake.gate_for(intake.pool_gates, intake.claim_request)',
      "then 'challenge_required'",
      'then null',
    ]),
    succeeds: '201 queued',
  },
  {
    finding: 'S7',
    name: 'asks the planner how many tickets another user has',
    attack: async ({ db2, rest }) => {
      await db2.rows(
        `insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id)
         select gen_random_uuid(), 'many', case when n <= 900 then $1 else 'user-' || n end, gen_random_uuid()
         from generate_series(1, 1000) n`,
        [VICTIM],
      );
      await db2.rows('analyze public.confirmed_tickets');
      const stranger = await rest.db2.token('authenticated', randomUUID());
      const planned = async (user: string) =>
        (
          await callRest(rest.db2, {
            path: `confirmed_tickets?user_id=eq.${user}&select=resource_id`,
            token: stranger,
            headers: { prefer: 'count=planned' },
          })
        ).range;
      const [ofVictim, ofNobody] = [await planned(VICTIM), await planned(randomUUID())];
      await db2.rows(`delete from public.confirmed_tickets where pool_id = 'many' and ${WITHOUT_A_TRACE}`);
      assert.match(ofVictim ?? '', /\/\d+$/);
      return ofVictim === ofNobody ? 'the same for every user' : 'a number of their own';
    },
    refused: 'the same for every user',
    guard: NO_STATISTICS,
    succeeds: 'a number of their own',
  },
];
