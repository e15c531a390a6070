import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { bury } from '../admin/support.ts';
import {
  ADMIN_KEY,
  ask,
  assertRefusal,
  bearer,
  claim,
  openClient,
  putOnSale,
  startTestServer,
} from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

describe('the admin API', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  let db2: pg.Client;
  const admin = bearer(ADMIN_KEY);
  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
  });
  after(async () => {
    await db1?.end();
    await db2?.end();
    await server?.stop();
    await databases?.stop();
  });
  const get = async (path: string) => {
    const answer = await ask(server.url + path, { headers: admin });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const post = (path: string, body: unknown, headers: Record<string, string> = admin) =>
    ask(server.url + path, { method: 'POST', headers, body });
  const all = async () => [
    (
      await db1.query(
        `select (select jsonb_agg(c order by c.pool_id) from public.engine_config c) as pools,
           (select count(*) from public.slot_manifest) as slots, (select count(*) from audit.audit_logs) as audit`,
      )
    ).rows,
    (
      await db2.query(
        `select (select jsonb_agg(e order by e.name) from public.webhook_endpoints e) as endpoints,
           (select count(*) from audit.audit_logs) as audit`,
      )
    ).rows,
  ];

  it('refuses a pool whose claims would be dead letters before they were tried, and says why', async () => {
    const before = await all();
    const made = await post('/admin/pools', { pool_id: 'once', slots: 1, max_retries: 1 });
    assertRefusal(made, 422, 'invalid_input');
    assert.match(made.json.error.hint, /max_retries must be at least 2\..*N means N - 1 tries/);
    assert.deepEqual(await all(), before);
    assertRefusal(await post('/admin/pools/once', { max_retries: 1 }), 422, 'invalid_input');
    assertRefusal(await post('/admin/pools/once', { max_retries: 2 }), 404, 'unknown_pool');
  });

  it('makes a pool with its slots and rules, once, and writes down who did', async () => {
    const made = await post('/admin/pools', { pool_id: 'gig', slots: 30, max_per_user: 2, reason: 'spring' });
    assert.equal(made.status, 201, made.text);
    assert.deepEqual(
      [made.json.pool_id, made.json.status, made.json.capacity, made.json.available, made.json.max_per_user],
      ['gig', 'open', 30, 30, 2],
    );
    assertRefusal(await post('/admin/pools', { pool_id: 'gig', slots: 1 }), 409, 'pool_exists');
    const { items } = await get('/admin/audit?limit=1');
    assert.deepEqual(
      [items[0].actor, items[0].action, items[0].subject, items[0].reason],
      ['admin', 'pool_create', 'pool gig', 'spring'],
    );
    assert.equal((await claim(server.url, 'gig', { user_id: 'ann' })).status, 201);
  });

  it('closes, throttles and enlarges a pool, and opens it again', async () => {
    const closed = await post('/admin/pools/gig', {
      is_active: false,
      commit_rate_per_sec: 5,
      add_slots: 10,
    });
    assert.deepEqual(
      [closed.status, closed.json.status, closed.json.commit_rate_per_sec, closed.json.capacity],
      [200, 'closed', 5, 40],
    );
    assertRefusal(await claim(server.url, 'gig', { user_id: 'bob' }), 409, 'closed');
    await post('/admin/pools/gig', { is_active: true, commit_rate_per_sec: null });
    assert.equal((await claim(server.url, 'gig', { user_id: 'bob' })).status, 201);
    const shown = await get('/admin/pools/gig');
    assert.deepEqual([shown.available, shown.reserved, shown.consumed], [38, 2, 0]);
    assertRefusal(await ask(`${server.url}/admin/pools/none`, { headers: admin }), 404, 'unknown_pool');
    assertRefusal(await post('/admin/pools/none', { add_slots: 1 }), 404, 'unknown_pool');
  });

  it('adds slots once under one request id, also when both are sent at once, and refuses another number', async () => {
    const { capacity } = await get('/admin/pools/gig');
    const add = (slots: number) => post('/admin/pools/gig', { add_slots: slots, request_id: 'add-1' });
    const answers = await Promise.all([add(5), add(5), add(5)]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
    );
    assert.equal((await get('/admin/pools/gig')).capacity, capacity + 5);
    assertRefusal(await add(6), 409, 'request_conflict');
    assertRefusal(await post('/admin/pools/gig', { add_slots: 1, request_id: '' }), 422, 'invalid_input');
    // Without an id each is a wish of its own.
    assert.equal((await post('/admin/pools/gig', { add_slots: 5 })).json.capacity, capacity + 10);
    const create = () => post('/admin/pools', { pool_id: 'made-once', slots: 3, request_id: 'create-1' });
    assert.deepEqual([(await create()).status, (await create()).json.capacity], [201, 3]);
    assertRefusal(await post('/admin/pools', { pool_id: 'made-once', slots: 3 }), 409, 'pool_exists');
    // Of no use to the tests that follow.
    await db1.query(`delete from public.inventory_slots where pool_id = 'made-once'`);
    await db1.query(`delete from public.engine_config where pool_id = 'made-once'`);
    await db1.query(`delete from intake.pool_totals where pool_id = 'made-once'`);
    await db1.query(`delete from intake.pool_marks where pool_id = 'made-once'`);
  });

  it('refuses an invalid pool, says why, and changes nothing', async () => {
    const before = await all();
    const cases: [path: string, body: unknown][] = [
      ['/admin/pools', { pool_id: 'a/b', slots: 1 }],
      ['/admin/pools', { pool_id: '..', slots: 1 }],
      ['/admin/pools', { pool_id: 'x' }],
      ['/admin/pools', { pool_id: 'x', slots: 1_000_001 }],
      ['/admin/pools', { pool_id: 'x', slots: -1 }],
      ['/admin/pools', { pool_id: 'x', slots: 1, opens_at: 'tomorrow' }],
      ['/admin/pools', { pool_id: 'x', slots: 1, opens_at: '2026-13-45T99:00:00Z' }],
      [
        '/admin/pools',
        { pool_id: 'x', slots: 1, opens_at: '2027-01-02T00:00:00Z', closes_at: '2027-01-01T00:00:00Z' },
      ],
      ['/admin/pools', { pool_id: 'x', slots: 1, validation_webhook_url: 'http://127.0.0.1/x' }],
      ['/admin/pools/gig', { batch_size: 0 }],
      ['/admin/pools/gig', { colour: 'red' }],
    ];
    for (const [path, body] of cases) {
      const answer = await post(path, body);
      assertRefusal(answer, 422, 'invalid_input');
      assert.notEqual(answer.json.error.hint, 'Compare the request with docs/api.md.');
    }
    assert.deepEqual(await all(), before);
  });

  it('lists pools page by page, with the next one to ask for', async () => {
    await putOnSale(db1, 'paged-1', 1);
    await putOnSale(db1, 'paged-2', 1);
    const seen: string[] = [];
    let after: string | null = '';
    while (after !== null) {
      const page: { items: { pool_id: string }[]; next: string | null } = await get(
        `/admin/pools?limit=1&after=${after}`,
      );
      seen.push(...page.items.map((pool) => pool.pool_id));
      after = page.next;
    }
    assert.deepEqual(seen, ['gig', 'paged-1', 'paged-2']);
  });

  it('finds a claim by user, id, request, pool and state, and refuses an invalid filter', async () => {
    const { json } = await claim(server.url, 'gig', { user_id: 'cleo', request_id: 'try-1' });
    const ids = async (query: string) =>
      (await get(`/admin/claims?${query}`)).items.map((item: { claim_id: string }) => item.claim_id);
    for (const query of [
      'user_id=cleo',
      `claim_id=${json.claim_id}`,
      `claim_id=${json.claim_id.slice(0, 28)}`,
      'request_id=try-1',
      'request_id=try-1&pool_id=gig',
      'user_id=cleo&state=queued&limit=10',
    ])
      assert.deepEqual(await ids(query), [json.claim_id], query);
    assert.deepEqual(await ids('user_id=cleo&state=committed'), []);
    for (const query of [
      'state=lost',
      'claim_id=1',
      'limit=0',
      'limit=1&limit=2',
      'colour=red',
      'user_id=%00',
    ])
      assertRefusal(
        await ask(`${server.url}/admin/claims?${query}`, { headers: admin }),
        422,
        'invalid_input',
      );
  });

  it('lists claims newest first, page by page, while more are made', async () => {
    await putOnSale(db1, 'stream', 9);
    const users = async (query: string) => {
      const { items, next } = await get(`/admin/claims?pool_id=stream&${query}`);
      return { users: items.map((item: { user_id: string }) => item.user_id).join(' '), next };
    };
    const make = async (user: string) => {
      // Ids begin with the millisecond: two claims of one have no order.
      const { claimed_at } = (await claim(server.url, 'stream', { user_id: user })).json;
      while (Date.now() <= Date.parse(claimed_at) + 1) await new Promise(setImmediate);
    };
    for (const user of ['u1', 'u2', 'u3', 'u4', 'u5']) await make(user);
    const first = await users('limit=2');
    assert.equal(first.users, 'u5 u4');
    await make('u6');
    const second = await users(`limit=2&after=${first.next}`);
    assert.equal(second.users, 'u3 u2');
    assert.deepEqual(await users(`limit=2&after=${second.next}`), { users: 'u1', next: null });
    assert.equal((await users('limit=1')).users, 'u6');
  });

  it('tells the way of a claim from the door to the ledger, and back from the dead letters', async () => {
    const way = async (claimId: string) =>
      (await get(`/admin/claims/${claimId}`)).timeline.map((event: { what: string }) => event.what);
    const { json } = await claim(server.url, 'gig', { user_id: 'dora' });
    assert.deepEqual(await way(json.claim_id), ['claimed', 'queued']);
    const db2 = await openClient(databases.db2.url);
    try {
      await db2.query('select public.finalize_transaction($1)', [json]);
    } finally {
      await db2.end();
    }
    assert.deepEqual(await way(json.claim_id), ['claimed', 'queued', 'committed']);
    await db1.query('delete from pgmq.q_intake_queue');
    const [letter] = await bury(db1, 'paged-1', 1);
    const { rows } = await db1.query(`select claim_id from public.claims where pool_id = 'paged-1'`);
    const { claim: dead, timeline } = await get(`/admin/claims/${rows[0].claim_id}`);
    assert.deepEqual(
      [dead.state, timeline[1].what, timeline[1].detail.msg_id],
      ['dead_letter', 'dead_letter', letter],
    );
    await post('/admin/dlq/replay', { msg_ids: [letter] });
    assert.deepEqual((await way(rows[0].claim_id)).toSorted(), ['claimed', 'dead_letter_replay', 'queued']);
    assertRefusal(
      await ask(`${server.url}/admin/claims/${randomUUID()}`, { headers: admin }),
      404,
      'unknown_claim',
    );
    assertRefusal(await ask(`${server.url}/admin/claims/1`, { headers: admin }), 422, 'invalid_input');
  });

  it('gives a claim back for its owner, and writes down once who did and why', async () => {
    await putOnSale(db1, 'regretted', 1);
    const { claim_id } = (await claim(server.url, 'regretted', { user_id: 'eve' })).json;
    const path = `/admin/claims/${claim_id}/release`;
    assertRefusal(await post(path, { reason: '' }), 422, 'invalid_input');
    for (const reason of ['asked by phone', 'asked again']) {
      const released = await post(path, { reason });
      assert.deepEqual([released.status, released.json.state], [200, 'released'], released.text);
    }
    const { items } = await get('/admin/audit');
    const written = items.filter(({ subject }: { subject: string }) => subject === `claim ${claim_id}`);
    assert.deepEqual(
      written.map(({ actor, action, reason }: Record<string, unknown>) => [actor, action, reason]),
      [['admin', 'claim_release', 'asked by phone']],
    );
    assert.equal((await claim(server.url, 'regretted', { user_id: 'bob' })).status, 201);
    assertRefusal(await post(`/admin/claims/${randomUUID()}/release`, {}), 404, 'unknown_claim');
  });

  it('lists calls newest first, page by page, by site, event and kind, and shows one', async () => {
    await db2.query(
      `select calls.record_calls(array['a', 'a', 'b'], array['1', '2', '1'], array['ring', 'hangup', 'ring'],
         array_fill('{"line": 7}'::text, array[3]), array_fill(now(), array[3]), array['x', 'y', null])`,
    );
    const kinds = async (query: string) =>
      (await get(`/admin/calls?${query}`)).items.map((call: Record<string, string>) => call.kind);
    assert.deepEqual((await kinds('')).length, 3);
    assert.deepEqual(await kinds('site_id=a&event_id=1'), ['ring']);
    assert.deepEqual(await kinds('kind=hangup'), ['hangup']);
    const first = await get('/admin/calls?limit=2');
    const second = await get(`/admin/calls?limit=2&after=${first.next}`);
    assert.deepEqual([first.items.length, second.items.length, second.next], [2, 1, null]);
    const { items } = await get('/admin/calls?site_id=b');
    assert.equal(items[0].is_signed, false);
    assert.deepEqual((await get(`/admin/calls/${items[0].id}`)).payload, { line: 7 });
    const none = await ask(`${server.url}/admin/calls/${randomUUID()}`, { headers: admin });
    assertRefusal(none, 404, 'not_found');
    const nonsense = await ask(`${server.url}/admin/calls?before=1`, { headers: admin });
    assertRefusal(nonsense, 422, 'invalid_input');
  });

  it('shows the audit log newest first, page by page, of either database', async () => {
    const all = (await get('/admin/audit')).items.map((row: { id: number }) => row.id);
    assert.deepEqual(
      all,
      all.toSorted((a: number, b: number) => b - a),
    );
    const first = await get('/admin/audit?limit=2');
    assert.equal(first.next, String(all[1]));
    assert.equal((await get(`/admin/audit?limit=2&after=${first.next}`)).items[0].id, all[2]);
    assert.deepEqual(await get('/admin/audit?db=2'), { items: [], next: null });
  });

  it('examines databases, clock, extensions, jobs and workers', async () => {
    const { items, next } = await get('/admin/health');
    assert.equal(next, null);
    const kinds = new Set(items.map((item: { kind: string }) => item.kind));
    assert.deepEqual([...kinds], ['database', 'redis', 'workers', 'inbox', 'extension', 'job']);
    for (const item of items) {
      assert.deepEqual(Object.keys(item), ['kind', 'name', 'status', 'summary', 'detail']);
      assert.match(item.status, /^(ok|warn|down|off)$/);
    }
    assert.match(items[0].summary, /^Postgres \d/);
    assert.equal(items[0].detail.connections['sluice-server'] >= 1, true);
    const crewOf = (list: { name: string; status: string }[], name: string) =>
      list.find((item) => item.name === name)?.status;
    for (const name of ['Bridge workers', 'Webhook workers'])
      assert.equal(crewOf(items, name), 'warn', 'no worker runs in this test');
    // A worker is seen by the name of its connection, in the database that it takes work from.
    await db2.query(`set application_name = 'sluice-webhook-worker'`);
    try {
      const seen = (await get('/admin/health')).items;
      assert.deepEqual([crewOf(seen, 'Bridge workers'), crewOf(seen, 'Webhook workers')], ['warn', 'ok']);
    } finally {
      await db2.query('reset application_name');
    }
  });
});
