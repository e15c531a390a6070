// What the holder of one endpoint's secret, or an operator who may add endpoints, tries against another endpoint. Each row is
// an attack and what comes of it; beside it the same with its guard switched off, where it succeeds.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ADMIN_KEY, ask, bearer } from '../server/support.ts';
import { addEndpoint, allowSecrets, paymentEvent, SECRETS, WebhookWorld } from '../webhook/world.ts';

const A_SECRET = 'whsec_of_the_first_endpoint';
const B_SECRET = 'whsec_of_the_second_endpoint';
const HOME = '/root';
Object.assign(SECRETS, { A_SECRET, B_SECRET, HOME, LONG_HOME: 'a path that is long enough' });

interface Attack {
  readonly name: string;
  /** What comes of it. */
  readonly held: string;
  /** And what without the guard: the control. */
  readonly open: string;
  run(isGuarded: boolean): Promise<string>;
}

describe('strangers at endpoints', () => {
  let world: WebhookWorld;
  let serial = 0;
  before(async () => {
    world = await WebhookWorld.start();
    await allowSecrets(world.db2, ['A_SECRET', 'B_SECRET']);
    // The first of its provider has the bare name; the pairs below are the second and later ones.
    await addEndpoint(world.db2, 'first', 'stripe', 'inline');
  });
  after(() => world?.stop());

  const value = async <Value>(sql: string, values: unknown[] = []): Promise<Value> =>
    Object.values((await world.rows(sql, values))[0] ?? {})[0] as Value;

  /** An endpoint with a secret of its own; its tenant is the answer. */
  const add = async (
    name: string,
    secret: string,
    settings = {},
    tenant: string | null = null,
    provider = 'stripe',
  ) => {
    await world.db2.query(
      `select webhook.add_endpoint(p_name => $1, p_provider => $2, p_secret_names => array[$3], p_mode => 'inline',
         p_settings => $4, p_actor => 'test', p_tenant => $5)`,
      [name, provider, secret, settings, tenant],
    );
    return value<string>('select tenant from webhook.find_endpoint($1)', [name]);
  };

  /** Endpoint A, and B, whose secret the stranger has. Without the guard both are one tenant, as they were. */
  const pair = async (isGuarded: boolean, provider = 'stripe') => {
    const n = ++serial;
    const tenant = await add(`a-${n}`, 'A_SECRET', {}, null, provider);
    await add(`b-${n}`, 'B_SECRET', {}, isGuarded ? null : tenant, provider);
    const through =
      (endpoint: string, secret: string) => async (body: string, headers?: Record<string, string>) => {
        const more = { secret, ...(headers && { headers }) };
        return (await world.send(`${endpoint}-${n}`, provider, body, more)).json.status;
      };
    return { n, tenant, a: through('a', A_SECRET), b: through('b', B_SECRET) };
  };

  const balance = async (tenant: string, user: string): Promise<number> =>
    Number((await value('select amount from webhook.balance($2) where provider = $1', [tenant, user])) ?? 0);
  /** What Stripe tells about a payment of this user. */
  const told = (id: string, user: string, more: Record<string, unknown> = {}) =>
    paymentEvent(id, {
      id: `pi_${user}`,
      amount: 5_000,
      amount_received: 5_000,
      metadata: { user_id: user },
      ...more,
    });
  const about = (id: string, type: string, user: string, more: Record<string, unknown>) =>
    told(id, user, { type, payment_intent: `pi_${user}`, ...more });
  const withTop = (body: string, more: Record<string, unknown>) =>
    JSON.stringify({ ...JSON.parse(body), ...more });

  const post = (path: string, body: Record<string, unknown>) =>
    ask(`${world.server.url}/admin/webhooks${path}`, { method: 'POST', body, headers: bearer(ADMIN_KEY) });
  /** The status that a signed payment gets at an endpoint. */
  const signedWith = async (endpoint: string, secret: string) =>
    (await world.send(endpoint, 'stripe', paymentEvent(`evt_${++serial}`), { secret })).status;

  const ATTACKS: Attack[] = [
    {
      name: "an id of A's, sent first through B with another body",
      held: 'B processed, A processed, 5000',
      open: 'B processed, A body_differs, 0',
      async run(isGuarded) {
        const { n, tenant, a, b } = await pair(isGuarded);
        const user = `shadowed_${n}`;
        const first = await b(told(`evt_REAL_${n}`, `stranger_${n}`));
        return `B ${first}, A ${await a(told(`evt_REAL_${n}`, user))}, ${await balance(tenant, user)}`;
      },
    },
    {
      name: "a refund of A's payment through B",
      held: '5000',
      open: '0',
      async run(isGuarded) {
        const { n, tenant, a, b } = await pair(isGuarded);
        const user = `refunded_${n}`;
        await a(told(`evt_paid_${n}`, user));
        await b(
          about(`evt_back_${n}`, 'charge.refunded', user, {
            id: `ch_${n}`,
            amount_refunded: 5_000,
            amount_captured: 5_000,
          }),
        );
        return String(await balance(tenant, user));
      },
    },
    {
      name: "a dispute about A's payment through B",
      held: '5000',
      open: '0',
      async run(isGuarded) {
        const { n, tenant, a, b } = await pair(isGuarded);
        const user = `disputed_${n}`;
        await a(told(`evt_paid_${n}`, user));
        await b(
          about(`evt_dispute_${n}`, 'charge.dispute.created', user, {
            id: `dp_${n}`,
            amount: 5_000,
            balance_transactions: [{ id: `txn_${n}`, amount: -5_000, currency: 'usd' }],
          }),
        );
        return String(await balance(tenant, user));
      },
    },
    {
      name: "a credit for A's user through B",
      held: '0',
      open: '5000',
      async run(isGuarded) {
        const { n, tenant, b } = await pair(isGuarded);
        await b(told(`evt_gift_${n}`, `gifted_${n}`));
        return String(await balance(tenant, `gifted_${n}`));
      },
    },
    {
      name: "A's signed body through B under another id, where the id is not signed",
      held: 'skipped',
      open: 'duplicate',
      async run(isGuarded) {
        const { n, a, b } = await pair(isGuarded, 'github');
        const body = `{"zen":${n}}`;
        await b(body, { 'x-github-delivery': `first-${n}`, 'x-github-event': 'push' });
        return a(body, { 'x-github-delivery': `second-${n}`, 'x-github-event': 'push' });
      },
    },
    {
      name: 'a test event, which costs its sender nothing',
      held: 'skipped, 0, test event: the endpoint takes live ones',
      open: 'processed, 5000, null',
      run: (isGuarded) => misfit(isGuarded ? {} : { livemode: 'both' }, { livemode: false }),
    },
    {
      name: 'a live event at an endpoint for tests',
      held: 'skipped, 0, live event: the endpoint takes test ones',
      open: 'processed, 5000, null',
      run: (isGuarded) => misfit({ livemode: isGuarded ? 'test' : 'both' }, { livemode: true }),
    },
    {
      name: 'an event of an account that is connected to ours',
      held: "skipped, 0, account acct_stranger is not one of the endpoint's",
      open: 'processed, 5000, null',
      run: (isGuarded) =>
        misfit(
          { accounts: isGuarded ? [] : ['acct_stranger'] },
          { livemode: true, account: 'acct_stranger' },
        ),
    },
    {
      name: 'the same, of another account than the one that is listed',
      held: "skipped, 0, account acct_stranger is not one of the endpoint's",
      open: 'processed, 5000, null',
      run: (isGuarded) =>
        misfit(
          { accounts: ['acct_friend', ...(isGuarded ? [] : ['acct_stranger'])] },
          { account: 'acct_stranger' },
        ),
    },
    {
      name: 'a thin event of a connected account',
      held: "skipped, 0, account acct_stranger is not one of the endpoint's",
      open: 'processed, 5000, null',
      run: (isGuarded) =>
        misfit({ accounts: isGuarded ? [] : ['acct_stranger'] }, { context: 'acct_stranger' }),
    },
    {
      name: 'the replay of a test event, by an operator who did not look',
      held: 'misfit, 0',
      open: 'replayed, 5000',
      async run(isGuarded) {
        const n = ++serial;
        const tenant = await add(`c-${n}`, 'A_SECRET');
        const body = withTop(told(`evt_test_${n}`, `tester_${n}`), { livemode: false });
        await world.send(`c-${n}`, 'stripe', body, { secret: A_SECRET });
        if (!isGuarded) await post('/endpoints/change', { name: `c-${n}`, changes: { livemode: 'both' } });
        const { id } = (await world.event(`evt_test_${n}`)) ?? {};
        const { json } = await post('/events/replay', { ids: [id] });
        await world.process();
        return `${json.results[0].outcome}, ${await balance(tenant, `tester_${n}`)}`;
      },
    },
    {
      name: 'a new endpoint with HOME as its secret, at the admin door',
      held: '422, HOME is not on the list of secrets, which the owner of DB2 keeps: sluice webhooks secrets allow.',
      open: '201, undefined',
      async run(isGuarded) {
        // The control has a value that is long enough, so that the list alone decides.
        const name = isGuarded ? 'HOME' : 'LONG_HOME';
        if (!isGuarded) await allowSecrets(world.db2, [name]);
        const body = { name: `home-${++serial}`, provider: 'stripe', secret_names: [name] };
        const { status, json } = await post('/endpoints', body);
        return `${status}, ${json.error?.hint}`;
      },
    },
    {
      name: 'HOME as the secret of an endpoint or a call site, by the functions of the database as service_role',
      held: 'SL001 SL001 SL001 SL001',
      open: 'done done done done',
      async run(isGuarded) {
        const n = ++serial;
        const secret = `PLANTED_${n}`;
        if (!isGuarded) await allowSecrets(world.db2, [secret]);
        await add(`d-${n}`, 'A_SECRET');
        await world.db2.query(`select calls.add_site($1, '{OPS_SITE_SECRET}', true, null, 'test')`, [
          `site-${n}`,
        ]);
        const named = { secret_names: [secret] };
        const tries: [string, unknown[]][] = [
          [`select webhook.add_endpoint($1, 'stripe', array[$2], p_actor => 'x')`, [`planted-${n}`, secret]],
          [`select webhook.change_endpoint($1, $2, 'x')`, [`d-${n}`, named]],
          [`select calls.add_site($1, array[$2], true, null, 'x')`, [`planted-${n}`, secret]],
          [`select calls.change_site($1, $2, 'x')`, [`site-${n}`, named]],
        ];
        const outcomes: string[] = [];
        for (const [sql, values] of tries) outcomes.push(await asService(sql, values));
        return outcomes.join(' ');
      },
    },
    {
      name: 'the list of secrets and the tenants, written by service_role',
      held: '42501 42501 42501',
      open: 'done done done',
      async run(isGuarded) {
        const n = ++serial;
        const tries: [string, unknown[]][] = [
          [`select webhook.allow_secret($1, 'x')`, [`SMUGGLED_${n}`]],
          ['insert into webhook.secret_names (name) values ($1)', [`SMUGGLED_TOO_${n}`]],
          ['insert into webhook.tenants (tenant) values ($1)', [`stripe:smuggled-${n}`]],
        ];
        const outcomes: string[] = [];
        for (const [sql, values] of tries)
          outcomes.push(await (isGuarded ? asService(sql, values) : asOwner(sql, values)));
        return outcomes.join(' ');
      },
    },
    {
      name: 'an event signed with the value of a variable that is not on the list, at an endpoint put there by hand',
      held: '401',
      open: '200',
      async run(isGuarded) {
        const name = `by-hand-${++serial}`;
        const secret = `VARIABLE_${serial}`;
        SECRETS[secret] = 'a path that is long enough';
        if (!isGuarded) await allowSecrets(world.db2, [secret]);
        await world.db2.query(
          `insert into public.webhook_endpoints (name, provider, secret_names) values ($1, 'stripe', array[$2])`,
          [name, secret],
        );
        return String(await signedWith(name, SECRETS[secret]));
      },
    },
    {
      name: 'an event signed with a value that is too short to be a secret',
      held: '401',
      open: '200',
      async run(isGuarded) {
        const name = `short-${++serial}`;
        const secret = `SHORT_${serial}`;
        SECRETS[secret] = isGuarded ? HOME : `${HOME}${HOME}${HOME}${HOME}`;
        await allowSecrets(world.db2, [secret]);
        await add(name, secret);
        return String(await signedWith(name, SECRETS[secret]));
      },
    },
    {
      name: 'an event signed with a secret that the owner has taken off the list',
      held: '200 401',
      open: '200 200',
      async run(isGuarded) {
        const name = `leaked-${++serial}`;
        const secret = `LEAKED_${serial}`;
        SECRETS[secret] = 'a secret that was published';
        await allowSecrets(world.db2, [secret]);
        await add(name, secret);
        const before = await signedWith(name, SECRETS[secret]);
        if (isGuarded) await world.db2.query(`select webhook.remove_secret($1, 'owner')`, [secret]);
        let after = await signedWith(name, SECRETS[secret]);
        // A server believes its last look for a second.
        const until = Date.now() + 10_000;
        while (isGuarded && after === before && Date.now() < until)
          after = await signedWith(name, SECRETS[secret]);
        return `${before} ${after}`;
      },
    },
    {
      name: 'an endpoint under the name of a deleted one',
      held: 'SL001',
      open: 'done',
      async run(isGuarded) {
        const n = ++serial;
        const tenant = await add(`gone-${n}`, 'A_SECRET');
        await world.db2.query('delete from public.webhook_endpoints where name = $1', [`gone-${n}`]);
        return asService(
          `select webhook.add_endpoint($1, 'stripe', '{B_SECRET}', p_actor => 'x', p_tenant => $2)`,
          [`gone-${n}`, isGuarded ? null : tenant],
        );
      },
    },
    {
      name: 'an endpoint that is moved to another tenant, by the owner of the database',
      held: '23001',
      open: 'done',
      async run(isGuarded) {
        const { n, tenant } = await pair(true);
        await world.db2.query('begin');
        if (!isGuarded)
          await world.db2.query('alter table public.webhook_endpoints disable trigger tenant_is_fixed');
        const outcome = await asOwner('update public.webhook_endpoints set tenant = $1 where name = $2', [
          tenant,
          `b-${n}`,
        ]);
        await world.db2.query('rollback');
        return outcome;
      },
    },
  ];

  /** What becomes of an event with these fields at an endpoint with these settings, and what its user has then. */
  async function misfit(settings: Record<string, unknown>, fields: Record<string, unknown>): Promise<string> {
    const n = ++serial;
    const tenant = await add(`m-${n}`, 'A_SECRET', settings);
    const body = withTop(told(`evt_m_${n}`, `m_${n}`), fields);
    const { json } = await world.send(`m-${n}`, 'stripe', body, { secret: A_SECRET });
    const { error } = (await world.event(`evt_m_${n}`)) ?? {};
    return `${json.status}, ${await balance(tenant, `m_${n}`)}, ${error}`;
  }

  async function asOwner(sql: string, values: unknown[]): Promise<string> {
    try {
      await world.db2.query(sql, values);
      return 'done';
    } catch (error) {
      return (error as { code: string }).code;
    }
  }

  async function asService(sql: string, values: unknown[]): Promise<string> {
    await world.db2.query('set role service_role');
    try {
      return await asOwner(sql, values);
    } finally {
      await world.db2.query('reset role');
    }
  }

  for (const { name, held, open, run } of ATTACKS) {
    it(`${name}: ${held}`, async () => assert.equal(await run(true), held));
    it(`${name}, without the guard: ${open}`, async () => assert.equal(await run(false), open));
  }

  it('after the first endpoint is deleted, no later one gets the bare name', async () => {
    assert.equal(await add('hub-1', 'A_SECRET', {}, null, 'slack'), 'slack');
    await world.db2.query(`delete from public.webhook_endpoints where name = 'hub-1'`);
    assert.equal(await add('hub-2', 'A_SECRET', {}, null, 'slack'), 'slack:hub-2');
  });
});
