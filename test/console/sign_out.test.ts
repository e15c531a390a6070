import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { EndedSessions } from '../../src/server/ended_sessions.ts';
import { memoryLog } from '../core/support.ts';
import { ADMIN_KEY, ask, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openEvents, openStream } from './support.ts';

type Server = Awaited<ReturnType<typeof startTestServer>>;

describe('signing out', () => {
  let databases: TestDatabases;
  let servers: [Server, Server];
  before(async () => {
    databases = await startDatabases();
    servers = [await startTestServer(databases), await startTestServer(databases)];
  });
  after(async () => {
    for (const server of servers ?? []) await server.stop();
    await databases?.stop();
  });

  const signIn = async () => {
    const { headers } = await ask(`${servers[0].url}/admin/session`, {
      method: 'POST',
      body: { key: ADMIN_KEY },
    });
    return { cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '' };
  };
  const statusOf = async ({ url }: Server, cookie: { cookie: string }) =>
    (await ask(`${url}/admin/pools`, { headers: cookie })).status;

  it('ends the session in every server, also one that starts later, and its live view', async () => {
    const [here, there] = servers;
    const [cookie, other] = [await signIn(), await signIn()];
    const live = await openStream(`${there.url}/admin/live`, cookie);
    assert.match((await live.next()) ?? '', /^event: sample/);
    for (const server of servers) assert.equal(await statusOf(server, cookie), 200);

    const headers = { ...cookie, 'x-sluice-csrf': '1' };
    assert.equal((await ask(`${here.url}/admin/session`, { method: 'DELETE', headers })).status, 204);
    assert.equal(await statusOf(here, cookie), 401);
    while ((await statusOf(there, cookie)) !== 401) await delay(50);
    while ((await live.next()) !== undefined);
    const later = await startTestServer(databases);
    try {
      assert.equal(await statusOf(later, cookie), 401);
    } finally {
      await later.stop();
    }
    for (const server of servers) assert.equal(await statusOf(server, other), 200);
    const still = await openEvents(`${here.url}/admin/live`, other);
    await still.next('sample');
    still.leave();
  });
});

describe('sessions that ended', () => {
  const session = { id: 'one', expiresMs: 10_000 };

  it('are ended here while the intake is away, which is told, and operators are not kept waiting', async () => {
    const log = memoryLog();
    const away = () => Promise.reject(new Error('away'));
    const ended = new EndedSessions(() => 0, away, log);
    assert.equal(await ended.has(session), false);
    await ended.end(session);
    assert.equal(await ended.has(session), true);
    assert.ok(
      log.lines.some(({ message }) => message.startsWith('a sign-out is known to this process only')),
    );
    const silent = new EndedSessions(
      () => 0,
      () => new Promise<never>(() => undefined),
      log,
    );
    assert.equal(await silent.has(session), false);
  });

  it('are told to the intake once it is back, until it has taken them', async () => {
    const told: unknown[] = [];
    let refusals = 2;
    const intake = async (name: string, args: Record<string, unknown>) => {
      if (name === 'session_end') {
        if (refusals-- > 0) throw new Error('away');
        told.push(args.p_session_id);
      }
      return [];
    };
    const ended = new EndedSessions(() => 0, intake, memoryLog(), { againMs: 5 });
    await ended.end(session);
    assert.deepEqual(told, []);
    while (told.length === 0) await delay(5);
    await delay(50);
    assert.deepEqual(told, ['one']);
  });

  it('are forgotten when their time is over, and asked for once a second at most', async () => {
    let now = 0;
    let asked = 0;
    const rows = [{ session_id: 'one', ends_ms: 10_000 }];
    const intake = async () => {
      asked++;
      return rows as never[];
    };
    const ended = new EndedSessions(() => now, intake);
    assert.deepEqual([await ended.has(session), await ended.has(session), asked], [true, true, 1]);
    now = 999;
    await ended.has(session);
    assert.equal(asked, 1);
    now = 1_000;
    await ended.has(session);
    assert.equal(asked, 2);
    rows.pop();
    now = 9_999;
    assert.equal(await ended.has(session), true, 'what was ended stays so, whatever the intake has lost');
    now = 11_000;
    assert.equal(await ended.has(session), false);
  });
});
