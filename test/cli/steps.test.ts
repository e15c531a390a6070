// Commands that act in several calls tell what they did, also where a later call fails: it is done, and in the audit log.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { bury, withoutTombstones } from '../admin/support.ts';
import { storeEvents } from '../admin/webhook_support.ts';
import { type Fault, type FlakyProxy, startProxy } from '../client/proxy.ts';
import { ADMIN_KEY, ask, bearer, claim, openClient, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { runHere } from './support.ts';

const AWAY: Fault = { status: 503 };
/** What the server takes in one call, and one more. */
const TWO_CALLS = 1_001;
/** What one batch of `webhooks replay` holds. */
const BATCH = 500;

describe('a command whose later call fails', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let proxy: FlakyProxy;
  let db1: pg.Client;
  let db2: pg.Client;
  let env: Record<string, string>;

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    proxy = await startProxy(server.url);
    [db1, db2] = await Promise.all([openClient(databases.db1.url), openClient(databases.db2.url)]);
    env = {
      SLUICE_URL: proxy.url,
      SLUICE_ADMIN_KEY: ADMIN_KEY,
      DB1_URL: databases.db1.url,
      DB2_URL: databases.db2.url,
    };
    await putOnSale(db1, 'p', 10);
  });
  after(async () => {
    await Promise.all([db1?.end(), db2?.end()]);
    await proxy?.close();
    await server?.stop();
    await databases?.stop();
  });

  const run = (faults: Fault[], ...words: string[]) => {
    proxy.faults.splice(0, proxy.faults.length, ...faults);
    return runHere(words, env);
  };
  const claimed = async (user: string): Promise<string> => {
    const { status, json } = await claim(server.url, 'p', { user_id: user });
    assert.equal(status, 201);
    return json.claim_id;
  };

  it('claims release: names those that were released', async () => {
    const ids = [await claimed('ann'), await claimed('bob')];
    const { code, stdout, stderr } = await run(
      ['none', AWAY],
      ...['claims', 'release', ...ids, '--yes', '--json'],
    );
    assert.equal(code, 1);
    assert.deepEqual(JSON.parse(stdout), { results: [{ claim_id: ids[0], outcome: 'released' }] });
    assert.match(stderr, /^error: the server answered 503\n/);
  });

  it('claims void: leaves what it asked for as requested', async () => {
    const id = await claimed('cyd');
    const { code, stdout, stderr } = await run(
      ['none', 'none', ...Array<Fault>(30).fill(AWAY)],
      ...['claims', 'void', id, '--yes', '--reason', 'rain'],
    );
    assert.deepEqual([code, stdout.trimEnd().split('\n').at(-1)], [0, `${id}  void_requested`]);
    assert.match(stderr, /1 are still on their way/);
  });

  it('dlq discard: leaves what it discarded as ending', async () => {
    const [id] = await bury(db1, 'p', 1);
    await withoutTombstones(databases.db2.url, async () => {
      const { code, stdout, stderr } = await run(['none', AWAY], 'dlq', 'discard', String(id), '--yes');
      assert.deepEqual([code, stdout], [0, `ID  OUTCOME\n${id}   ending\n`]);
      assert.match(stderr, /^1 still ending: /);
    });
  });

  it('issues replay: says how many went round', async () => {
    await putOnSale(db1, 'crowd', TWO_CALLS);
    await bury(db1, 'crowd', TWO_CALLS);
    const { json } = await ask(`${server.url}/admin/issues?lane=crowd`, { headers: bearer(ADMIN_KEY) });
    const [issue] = json.issues;
    const { code, stdout, stderr } = await run(
      ['none', 'none', AWAY],
      ...['issues', 'replay', issue.id, '--yes', '--reason', 'mended'],
    );
    assert.equal(code, 1);
    assert.match(stdout, /replayed +1000 .*\n1 more come after these\.\n$/);
    assert.match(stderr, /error: the server answered 503\n/);
  });

  it('webhooks replay: names the events of the batches that are done', async () => {
    const names = Array.from({ length: BATCH + 1 }, (_, index) => `evt_${index}`);
    const events = await storeEvents(db2, names);
    await db2.query(`
      create function public.refuse_last() returns trigger language plpgsql as $$
      begin raise exception 'the disk is full' using errcode = '53100'; end $$;
      create trigger refuse_last before update on public.webhook_events for each row
      when (old.event_id = 'evt_${BATCH}') execute function public.refuse_last()`);
    const { code, stdout, stderr } = await run(
      [],
      ...['webhooks', 'replay', '--provider', 'test', '--limit', '1000', '--yes', '--json'],
    );
    assert.equal(code, 1);
    const { results } = JSON.parse(stdout) as { results: { id: string; outcome: string }[] };
    assert.deepEqual(
      results.map(({ id, outcome }) => [id, outcome]),
      events.slice(0, BATCH).map(({ id }) => [id, 'replayed']),
    );
    assert.match(stderr, /error: DB2 says: the disk is full\n/);
  });
});
