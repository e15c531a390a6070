import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { openShop, record } from './sql_support.ts';

const WORKER = fileURLToPath(new URL('./crashing_worker.ts', import.meta.url));
const NEIGHBOURS = 12;

describe('a TypeScript handler that ends the process', () => {
  let databases: TestDatabases;
  let session: Session;
  before(async () => {
    databases = await startDatabases({ db1: false });
    session = await openSession(databases.db2.url);
  });
  after(async () => {
    await session?.close();
    await databases?.stop();
  });

  const work = async () => {
    const worker = spawn(process.execPath, ['--import', 'tsx', WORKER, databases.db2.url], {
      stdio: 'inherit',
    });
    const [code] = await once(worker, 'exit');
    return code;
  };
  const leasesEnd = () =>
    session.client.query(
      `update public.webhook_events set next_attempt_at = now(), lease_until = now() where status = 'processing'`,
    );

  it('takes no neighbour with it, and is given up alone', async () => {
    const shop = await openShop(session);
    await session.value(`select webhook.remove_handler('app.act', 'test')`);
    // A type of an SQL handler is not given away.
    await session.client.query(`delete from public.webhook_handlers where name = 'app.act'`);
    await record(session, shop, ['before']);
    await record(session, shop, ['bad'], '{"exit": true}');
    await record(
      session,
      shop,
      Array.from({ length: NEIGHBOURS }, (_, index) => `after-${index}`),
    );
    // The first time all of them are in one process.
    assert.equal(await work(), 1);
    await leasesEnd();
    assert.equal(await work(), 1);
    // Now only the bad one is held by a dead process; the others wait, or have succeeded.
    const held = await session.rows(
      `select event_id from public.webhook_events where status = 'processing' and lease_until > now()`,
    );
    assert.deepEqual(held, [{ event_id: 'bad' }]);
    assert.equal(await work(), 0);
    assert.deepEqual(
      await session.rows(
        `select e.status::text, count(*)::int as events, count(f.event_id)::int as effects
         from public.webhook_events e left join app.effects f using (event_id) where e.event_id <> 'bad' group by 1`,
      ),
      [{ status: 'success', events: NEIGHBOURS + 1, effects: NEIGHBOURS + 1 }],
    );
    await session.client.query('update public.webhook_events set takeovers = 9 where event_id = $1', ['bad']);
    await leasesEnd();
    assert.equal(await work(), 0);
    assert.deepEqual(
      await session.rows(`select status::text, error from public.webhook_events where event_id = 'bad'`),
      [{ status: 'dead_letter', error: 'lease_lost_repeatedly' }],
    );
  });
});
