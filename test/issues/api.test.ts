// What fails, over the admin API and the command line: each kind of failure once, replayed whole, resolved, and open again when it
// comes back.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import type { Issue, IssueResult } from '#core/console/issues.ts';
import { bury } from '../admin/support.ts';
import { auditRows, statuses, storeEvents, webhooksHere } from '../admin/webhook_support.ts';
import { runHere } from '../cli/support.ts';
import { addOperator } from '../operators/support.ts';
import {
  ADMIN_KEY,
  ask,
  assertRefusal,
  bearer,
  openClient,
  putOnSale,
  startTestServer,
} from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

type Server = Awaited<ReturnType<typeof startTestServer>>;

describe('issues', () => {
  let databases: TestDatabases;
  let servers: readonly [Server, Server];
  let db1: pg.Client;
  let db2: pg.Client;
  let viewer: string;
  const get = (path: string, key = ADMIN_KEY, server = servers[0]) =>
    ask(`${server.url}/admin/issues${path}`, { headers: bearer(key) });
  const post = (path: string, body: unknown = {}, key = ADMIN_KEY) =>
    ask(`${servers[0].url}/admin/issues${path}`, { method: 'POST', headers: bearer(key), body });
  const list = async (query = '', server = servers[0]): Promise<Issue[]> => {
    const { status, json, text } = await get(query, ADMIN_KEY, server);
    assert.equal(status, 200, text);
    assert.deepEqual(json.away, []);
    return json.issues;
  };
  const one = async (query: string, server = servers[0]): Promise<Issue> => {
    const found = await list(query, server);
    const [first] = found;
    assert(first !== undefined && found.length === 1, JSON.stringify(found));
    return first;
  };
  const told = ({ kind, lane, type, error, failures, state }: Issue) =>
    [kind, lane, type, error, failures, state].join(' ');
  const issues = (...args: string[]) =>
    runHere(['issues', ...args], { SLUICE_URL: servers[0].url, SLUICE_ADMIN_KEY: ADMIN_KEY });
  const outcomes = (results: readonly IssueResult[]) => results.map(({ outcome }) => outcome).toSorted();

  before(async () => {
    databases = await startDatabases();
    servers = [await startTestServer(databases), await startTestServer(databases)];
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    viewer = await addOperator(db1, 'the viewer', 'viewer');
    await putOnSale(db1, 'gig', 20);
    await putOnSale(db1, 'play', 20);
    await bury(db1, 'gig', 3, 'max_retries: status 500');
    await bury(db1, 'play', 1, 'max_retries: status 503');
    for (const number of [17, 18, 19])
      await storeEvents(db2, [`lost-${number}`], {
        type: 'order.paid',
        error: `order ${number} is not known`,
        ...(number === 18 && { status: 'failed' }),
      });
    await storeEvents(db2, ['void-1'], { type: 'order.void', error: 'order 20 is not known' });
  });
  after(async () => {
    await Promise.all([db1?.end(), db2?.end()]);
    await Promise.all(servers?.map((server) => server.stop()) ?? []);
    await databases?.stop();
  });

  it('are open to viewers, and acted on by operators alone', async () => {
    assertRefusal(await get('', 'not-the-key'), 401, 'auth_required');
    assert.equal((await get('', viewer)).status, 200);
    const { id } = await one('?type=order.void');
    for (const act of ['replay', 'resolve'])
      assertRefusal(await post(`/${id}/${act}`, {}, viewer), 403, 'role_refused');
  });

  it('are those of both databases in one list, filtered, and the same at every server', async () => {
    const all = await list();
    assert.deepEqual(all.map(told).toSorted(), [
      'claim gig max_retries status # 3 open',
      'claim play max_retries status # 1 open',
      'event  order.paid order # is not known 3 open',
      'event  order.void order # is not known 1 open',
    ]);
    assert.deepEqual(await list('', servers[1]), all);
    assert.deepEqual((await list('?kind=claim&lane=play')).map(told), [
      'claim play max_retries status # 1 open',
    ]);
    assert.equal((await list('?type=order.*')).length, 2);
    assert.equal((await list('?limit=1')).length, 1);
    assert.deepEqual(await list('?state=resolved'), []);
    assertRefusal(await get('?status=failed'), 422, 'invalid_input');
    const issue = await one('?type=order.paid');
    assert.deepEqual([issue.dead_letters, issue.example_error], [2, 'order 19 is not known']);
    assert.deepEqual((await get(`/${issue.id}`)).json, issue);
  });

  it('do not exist under other ids', async () => {
    assertRefusal(await get('/00000000-0000-4000-8000-000000000000'), 404, 'not_found');
    assertRefusal(await post('/00000000-0000-4000-8000-000000000000/replay'), 404, 'not_found');
    assertRefusal(await get('/gig'), 422, 'invalid_input');
  });

  it('have a plan that changes nothing, and are resolved by their replay, until they come back', async () => {
    const { id } = await one('?lane=gig');
    const plan = (await post(`/${id}/replay`, { dry_run: true })).json;
    assert.deepEqual([outcomes(plan.results), plan.left], [Array(3).fill('would_replay'), 0]);
    assert.equal((await one('?lane=gig')).state, 'open');
    const done = (await post(`/${id}/replay`, { reason: 'the hook is mended' })).json;
    assert.deepEqual([outcomes(done.results), done.left], [Array(3).fill('replayed'), 0]);
    const resolved = await one('?lane=gig', servers[1]);
    assert.deepEqual([resolved.state, resolved.failures, resolved.resolved_by], ['resolved', 0, 'admin']);
    const { rows } = await db1.query(
      `select actor, reason, details from audit.audit_logs where action = 'issue_replay'`,
    );
    assert.deepEqual(rows, [
      {
        actor: 'admin',
        reason: 'the hook is mended',
        details: { kind: 'claim', lane: 'gig', type: 'max_retries', outcomes: { replayed: 3 } },
      },
    ]);
    // The second time there is nothing to do.
    assert.deepEqual((await post(`/${id}/replay`)).json, { results: [], left: 0 });
    await db1.query('delete from pgmq.q_intake_queue');
    await bury(db1, 'gig', 1, 'max_retries: status 502');
    const back = await one('?lane=gig');
    assert.deepEqual([back.id, back.state, back.openings], [id, 'reopened', 2]);
  });

  it('keep their state when servers stop and start', async () => {
    const before = await list();
    await servers[1].stop();
    servers = [servers[0], await startTestServer(databases)];
    assert.deepEqual(await list('', servers[1]), before);
  });

  it('are resolved by hand, which leaves what failed where it is', async () => {
    const { id } = await one('?type=order.void');
    const { json } = await post(`/${id}/resolve`, { reason: 'a test' });
    assert.deepEqual([json.id, json.state, json.failures, json.resolved_by], [id, 'resolved', 1, 'admin']);
    assert.equal((await one('?type=order.void')).state, 'resolved');
    await storeEvents(db2, ['void-2'], { type: 'order.void', error: 'order 21 is not known' });
    assert.equal((await one('?type=order.void')).state, 'reopened');
  });

  it('give their words to the commands for events', async () => {
    const group = ['--type', 'order.paid', '--error', 'order # is not known'];
    const dry = await webhooksHere(databases.db2.url, ['skip', ...group, '--dry-run', '--json']);
    assert.deepEqual(
      JSON.parse(dry.stdout).results.map(({ event_id }: { event_id: string }) => event_id),
      ['lost-17', 'lost-18', 'lost-19'],
    );
  });

  it('are listed by the command line, as a table and as JSON', async () => {
    const found = JSON.parse((await issues('list', '--json')).stdout);
    assert.deepEqual(found, { issues: await list('?state=open'), away: [] });
    const { stdout } = await issues('--type', 'order.paid');
    assert.match(
      stdout,
      /^ISSUE +STATE +NOW +KIND +LANE +TYPE +ERROR +FIRST SEEN +LAST SEEN\n\S+ +open +3 +event +- +order\.paid +order # is not known /,
    );
    assert.equal((await issues('list', '--lane', 'nowhere')).stdout, 'No such issues.\n');
    assert.equal((await issues('list', '--state', 'odd')).code, 2);
    assert.equal((await issues('show', 'gig')).code, 2);
    const { id } = await one('?type=order.paid');
    assert.match((await issues('show', id)).stdout, /example_error +order 19 is not known/);
    const unknown = await issues('show', '00000000-0000-4000-8000-000000000000');
    assert.deepEqual([unknown.code, unknown.stdout], [1, '']);
  });

  it('are replayed and resolved by the command line, with the plan first', async () => {
    const { id } = await one('?type=order.paid');
    const plan = await issues('replay', id, '--dry-run');
    assert.match(plan.stdout, /^OUTCOME +NUMBER +EXAMPLE\nwould_replay +3 +\S+\n$/);
    assert.equal((await issues('replay', id)).code, 2, 'without a terminal it needs --yes');
    const done = await issues('replay', id, '--yes', '--reason', 'the shop is mended', '--json');
    assert.deepEqual(outcomes(JSON.parse(done.stdout).results), Array(3).fill('replayed'));
    const now = await statuses(db2);
    assert.deepEqual([now['lost-17'], now['lost-18'], now['void-1']], ['pending', 'pending', 'dead_letter']);
    assert.equal((await auditRows(db2, 'webhook_replay')).length, 3);
    assert.equal((await issues('replay', id, '--yes')).stdout, 'Nothing is left of it.\n');
    const other = await one('?lane=play');
    assert.match((await issues('resolve', other.id)).stdout, /is resolved until it comes back/);
    assert.equal((await one('?lane=play')).state, 'resolved');
  });

  it('of a database that is away are missing, and the answer says so', async () => {
    const without = await startTestServer({
      db1: databases.db1,
      db2: { url: 'postgres://ann@127.0.0.1:1/none' },
    });
    try {
      const { status, json } = await ask(`${without.url}/admin/issues?kind=claim`, {
        headers: bearer(ADMIN_KEY),
      });
      assert.equal(status, 200);
      assert.deepEqual([json.issues.length, json.away], [2, ['DB2']]);
    } finally {
      await without.stop();
    }
  });
});
