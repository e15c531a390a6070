import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import {
  ADMIN_KEY,
  ask,
  assertRefusal,
  bearer,
  openClient,
  putOnSale,
  startTestServer,
  token,
} from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { auditCount, bury, finishEnds, withoutTombstones } from './support.ts';

describe('/admin/dlq', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  const admin = bearer(ADMIN_KEY);

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db1 = await openClient(databases.db1.url);
    await putOnSale(db1, 'p', 50);
    await putOnSale(db1, 'other', 50);
  });
  after(async () => {
    await db1?.end();
    await server?.stop();
    await databases?.stop();
  });

  const post = (path: string, body: unknown, headers: Record<string, string> = admin) =>
    ask(`${server.url}${path}`, { method: 'POST', headers, body });
  const listing = async (query = '') => {
    const answer = await ask(`${server.url}/admin/dlq${query}`, { headers: admin });
    assert.equal(answer.status, 200, answer.text);
    return answer.json.messages;
  };

  it('opens to the admin key alone', async () => {
    const letters = await bury(db1, 'p', 1);
    const credentials: Record<string, Record<string, string>> = {
      'no header': {},
      'an empty header': { authorization: '' },
      'an empty key': { authorization: 'Bearer ' },
      'the word undefined': bearer('undefined'),
      'a wrong key': bearer('wrong'),
      'a key that begins like it': bearer(ADMIN_KEY.slice(0, -1)),
      'a key that goes on': bearer(`${ADMIN_KEY}x`),
      'another scheme': { authorization: `Basic ${ADMIN_KEY}` },
      'a signed-in user': bearer(await token({ role: 'authenticated', sub: 'u' })),
      'the anonymous key': bearer(await token({ role: 'anon' })),
      'the service role': bearer(await token({ role: 'service_role' })),
    };
    for (const headers of Object.values(credentials)) {
      assertRefusal(await ask(`${server.url}/admin/dlq`, { headers }), 401, 'auth_required');
      assertRefusal(await ask(`${server.url}/admin/dlq/${letters[0]}`, { headers }), 401, 'auth_required');
      assertRefusal(await post('/admin/dlq/replay', { msg_ids: letters }, headers), 401, 'auth_required');
      assertRefusal(await post('/admin/dlq/discard', { msg_ids: letters }, headers), 401, 'auth_required');
    }
    assert.equal((await listing()).length, 1);
    assert.equal(await auditCount(db1, 'dead_letter_replay'), 0);
    const discarded = await post('/admin/dlq/discard', { msg_ids: letters });
    assert.equal(discarded.status, 200);
    const [{ msg_id, outcome }] = discarded.json.results;
    assert.deepEqual([msg_id, outcome], [letters[0], 'discarded']);
    assert.deepEqual(await listing(), []);
  });

  it('says of a discarded letter that it is ending while the ledger cannot be told', async () => {
    const letters = await bury(db1, 'p', 1);
    await withoutTombstones(databases.db2.url, async () => {
      const { json } = await post('/admin/dlq/discard', { msg_ids: letters });
      const [{ outcome, claim_id }] = json.results;
      const [letter] = await listing();
      assert.deepEqual([outcome, letter.ending, letter.claim_id], ['ending', true, claim_id]);
    });
    assert.equal(await finishEnds(db1), 1);
    assert.deepEqual(await listing(), []);
  });

  it('lists by pool, reason and place, and hides nothing from the next listing', async () => {
    const letters = await bury(db1, 'p', 3, 'malformed: user_id');
    const others = await bury(db1, 'other', 2, '23514: no such seat');
    const ids = async (query: string) => (await listing(query)).map((row: { msg_id: number }) => row.msg_id);
    assert.deepEqual(await ids(''), [...letters, ...others]);
    assert.deepEqual(await ids(''), [...letters, ...others]);
    assert.deepEqual(await ids('?pool_id=other'), others);
    assert.deepEqual(await ids('?reason=malformed'), letters);
    assert.deepEqual(await ids('?limit=2'), letters.slice(0, 2));
    assert.deepEqual(await ids(`?limit=2&after=${letters[1]}`), [letters[2], others[0]]);
    assert.deepEqual(await ids('?older_than_sec=3600'), []);
    const shown = await ask(`${server.url}/admin/dlq/${letters[0]}`, { headers: admin });
    assert.equal(shown.json.reason, 'malformed: user_id');
    assert.equal(shown.json.claim_state, 'dead_letter');
    await post('/admin/dlq/discard', { msg_ids: [...letters, ...others] });
  });

  it('replays once, whether sent twice in turn or at the same time, with one audit row', async () => {
    const [first, second] = await bury(db1, 'p', 2);
    const before = await auditCount(db1, 'dead_letter_replay');
    const dry = await post('/admin/dlq/replay', { msg_ids: [first], dry_run: true });
    assert.deepEqual(dry.json, { results: [{ msg_id: first, outcome: 'would_replay' }] });
    assert.equal(await auditCount(db1, 'dead_letter_replay'), before);
    const outcomes = async (ids: unknown) =>
      (await post('/admin/dlq/replay', { msg_ids: ids, reason: 'mended' }, admin)).json.results;
    assert.deepEqual(await outcomes([first]), [{ msg_id: first, outcome: 'replayed' }]);
    assert.deepEqual(await outcomes([first]), [{ msg_id: first, outcome: 'not_found' }]);
    const race = await Promise.all([outcomes([second]), outcomes([second]), outcomes([second])]);
    assert.deepEqual(race.map(([row]) => row.outcome).sort(), ['not_found', 'not_found', 'replayed']);
    const { rows } = await db1.query(
      `select actor, reason, subject from audit.audit_logs where action = 'dead_letter_replay' order by id desc limit 2`,
    );
    assert.deepEqual(rows, [
      { actor: 'admin', reason: 'mended', subject: `dead letter ${second}` },
      { actor: 'admin', reason: 'mended', subject: `dead letter ${first}` },
    ]);
    assert.equal(await auditCount(db1, 'dead_letter_replay'), before + 2);
    await db1.query('delete from pgmq.q_intake_queue');
  });

  it('refuses what is not a request for it, and changes nothing', async () => {
    const letters = await bury(db1, 'p', 1);
    const cases: [body: unknown, status: number, code: string][] = [
      ['{', 400, 'invalid_json'],
      ['{"msg_ids":[1],"msg_ids":[2]}', 400, 'invalid_json'],
      [{}, 422, 'invalid_input'],
      [{ msg_ids: [] }, 422, 'invalid_input'],
      [{ msg_ids: ['1'] }, 422, 'invalid_input'],
      [{ msg_ids: [1.5] }, 422, 'invalid_input'],
      [{ msg_ids: [-1] }, 422, 'invalid_input'],
      [{ msg_ids: letters, force: true }, 422, 'invalid_input'],
      [{ msg_ids: letters, reason: 'x'.repeat(64 * 1024) }, 413, 'too_large'],
    ];
    for (const [body, status, code] of cases) {
      assertRefusal(await post('/admin/dlq/replay', body), status, code);
      assertRefusal(await post('/admin/dlq/discard', body), status, code);
    }
    const chunked = { ...admin, 'transfer-encoding': 'chunked' };
    assertRefusal(await post('/admin/dlq/replay', 'x'.repeat(70_000), chunked), 413, 'too_large');
    const large = await post('/admin/dlq/replay', {
      msg_ids: Array.from({ length: 1000 }, (_, i) => 9_000_000_000_000 + i),
    });
    assert.equal(large.json.results.length, 1000, 'more than the public doors take');
    for (const path of [
      '/admin//dlq',
      '/admin/dlq/',
      '/admin/dlq//replay',
      '/admin/dlq/x/discard',
      '/admin/%64lq',
    ])
      assertRefusal(await ask(`${server.url}${path}`, { headers: admin }), 404, 'not_found');
    assertRefusal(await ask(`${server.url}/admin/dlq/replay`, { headers: admin }), 405, 'method_not_allowed');
    assertRefusal(await post('/admin/dlq', {}), 405, 'method_not_allowed');
    assertRefusal(await ask(`${server.url}/admin/dlq?limit=x`, { headers: admin }), 422, 'invalid_input');
    assertRefusal(await ask(`${server.url}/admin/dlq/999999`, { headers: admin }), 404, 'not_found');
    assert.deepEqual(
      (await listing()).map((row: { msg_id: number }) => row.msg_id),
      letters,
    );
  });
});
