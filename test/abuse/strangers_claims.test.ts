// What a stranger can do to another buyer, tried against the server with its default settings: findings S2 to S5 and S7. Each
// attack is refused, and succeeds once its guard is switched off: then the guard, and nothing else, stood in its way.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { patch, script } from '../../chaos/controls/patches.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { callRest } from '../access/rest.ts';
import { type Answer, ask, bearer, claim, putOnSale, startTestServer, token } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { startTestPostgrest, type TestPostgrest } from '../support/postgrest.ts';
import { openSession, type Session } from '../support/sessions.ts';

const VICTIM = 'a0000000-0000-4000-8000-000000000001';
const SECRET = 'the-secret-of-the-victim';
const GUESS = 'a-guess-of-the-stranger';

interface Place {
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

interface Guard {
  readonly side: 'db1' | 'db2';
  readonly off: string;
  readonly on: string;
}

interface Attack {
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

/** The guard as places of functions, taken out and put back. */
function inFunctions(side: 'db1' | 'db2', ...places: [name: string, there: string, gone: string][]): Guard {
  return {
    side,
    off: script(...places.map((place) => patch(...place))),
    on: script(...places.map(([name, there, gone]) => patch(name, gone, there))),
  };
}

/** The stranger's guess is the claim's secret: what remains of the attack is the way to it. */
const RIGHT_GUESS: Guard = {
  side: 'db1',
  off: `create function public.guessed() returns trigger language plpgsql as $$
    begin new.secret_hash := sha256('${GUESS}'); return new; end $$;
    create trigger guessed before insert on public.claims for each row execute function public.guessed()`,
  on: 'drop trigger guessed on public.claims; drop function public.guessed()',
};

const NAMESPACE_OF_LIMITS = inFunctions('db1', [
  'intake.live_claims(text, text, boolean, int)',
  'c.verified = p_verified and c.freed_at',
  'true and c.freed_at',
]);
const OWNER_OF_REQUESTS = inFunctions(
  'db1',
  [
    'intake.claim_of_request(text, intake.claim_request)',
    `and c.user_id = p_request.user_id
    and c.verified = p_request.verified and c.secret_hash is not distinct from p_request.secret_hash`,
    'order by c.claim_id limit 1',
  ],
  [
    'intake.known_requests(text, intake.claim_request[])',
    `and c.user_id = r.user_id and c.verified = r.verified
        and c.secret_hash is not distinct from r.secret_hash`,
    'and c.pool_id = c.pool_id',
  ],
);
const VISIBLE_TICKETS: Guard = {
  side: 'db2',
  off: 'alter policy own_tickets on public.confirmed_tickets using ((select auth.uid())::text = user_id)',
  on: 'alter policy own_tickets on public.confirmed_tickets using ((select auth.uid())::text = user_id and verified)',
};
const FORM_OF_IDS = inFunctions('db1', [
  'intake.check_ids(text[], text[])',
  'if v_wrong is not null then',
  'if false and v_wrong is not null then',
]);
const WAY_PAST_THE_SERVER = inFunctions('db1', [
  'intake.gate_for(intake.pool_gates, intake.claim_request)',
  'when p_request.address is null and',
  'when false and p_request.address is null and',
]);
const NO_STATISTICS: Guard = {
  side: 'db2',
  off: 'alter table public.confirmed_tickets alter user_id set statistics 100; analyze public.confirmed_tickets',
  on: `alter table public.confirmed_tickets alter user_id set statistics 0;
    delete from pg_catalog.pg_statistic where starelid = 'public.confirmed_tickets'::regclass; analyze public.confirmed_tickets`,
};

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

async function madeBy(place: Place, body: unknown, headers = {}): Promise<string> {
  const { status, json } = await claim(place.url, place.pool, body, headers);
  assert.equal(status, 201);
  return json.claim_id;
}

const ATTACKS: Attack[] = [
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
      await db2.rows(`delete from public.confirmed_tickets where pool_id = 'many'`);
      assert.match(ofVictim ?? '', /\/\d+$/);
      return ofVictim === ofNobody ? 'the same for every user' : 'a number of their own';
    },
    refused: 'the same for every user',
    guard: NO_STATISTICS,
    succeeds: 'a number of their own',
  },
];

describe('a stranger', () => {
  let databases: TestDatabases;
  let server: RunningServer;
  let place: Omit<Place, 'pool'>;
  let pools = 0;

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    place = {
      url: server.url,
      db1: await openSession(databases.db1.url),
      db2: await openSession(databases.db2.url),
      rest: {
        db1: await startTestPostgrest(databases.db1),
        db2: await startTestPostgrest(databases.db2),
      },
      victim: bearer(await token({ role: 'authenticated', sub: VICTIM })),
      guest: bearer(await token({ role: 'authenticated', sub: randomUUID(), is_anonymous: true })),
    };
  });
  after(async () => {
    await server?.stop();
    await Promise.all([place?.rest.db1.stop(), place?.rest.db2.stop()]);
    await Promise.all([place?.db1.client.end(), place?.db2.client.end()]);
    await databases?.stop();
  });

  const attempt = async ({ attack }: Attack, rules = {}): Promise<string> => {
    const pool = `pool-${pools++}`;
    await putOnSale(place.db1.client, pool, 10, rules);
    return attack({ ...place, pool });
  };
  const withoutGuard = async (row: Attack): Promise<string> => {
    const { guard, rules } = row;
    if ('rules' in guard) return attempt(row, guard.rules);
    const { client } = place[guard.side];
    await client.query(guard.off);
    try {
      return await attempt(row, rules);
    } finally {
      await client.query(guard.on);
    }
  };

  for (const row of ATTACKS) {
    const { finding, name, rules, refused, succeeds } = row;
    it(`${finding}: ${name}: ${refused}; without the guard: ${succeeds}`, async () => {
      assert.equal(await attempt(row, rules), refused);
      assert.equal(await withoutGuard(row), succeeds);
      assert.equal(await attempt(row, rules), refused);
    });
  }
});
