import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { isAlive } from '../../src/stack/processes.ts';
import { openEvents } from '../console/support.ts';
import { ADMIN_KEY, ask, bearer, claim, openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { sluice } from '../work/support.ts';
import { envOf, killLeft, makerOf, makers, membersOf, metric, serve, stop, until } from './support.ts';

const LANES = 6;

describe('sluice serve --processes 2', () => {
  let databases: TestDatabases;
  let env: Record<string, string>;
  let db1: pg.Client;
  let observer: pg.Client;
  before(async () => {
    databases = await startDatabases({ settings: { track_functions: 'all' } });
    env = { ...envOf(databases), SLUICE_LOG: 'info' };
    db1 = await openClient(databases.db1.url);
    observer = await openClient(databases.db1.url);
    await putOnSale(db1, 'show', 100_000);
  });
  after(async () => {
    killLeft();
    await Promise.all([db1?.end(), observer?.end()]);
    await databases?.stop();
  });

  it('answers at one port from both, where one process answers alone', async () => {
    const two = await serve(env, '--processes', '2');
    assert.equal((await makers(two.url)).size, 2);
    assert.equal(membersOf(two).length, 2);
    await stop(two);
    const one = await serve(env);
    assert.equal((await makers(one.url)).size, 1);
    assert.deepEqual(membersOf(one), []);
    await stop(one);
  });

  it('refuses a number of processes that cannot be meant, with exit code 2', async () => {
    for (const command of ['serve', 'work'])
      for (const processes of ['0', '65', 'x', '-1', '1.5']) {
        const { code, stderr } = await sluice([command, `--processes=${processes}`], env).ended;
        assert.equal(code, 2);
        assert.match(
          stderr,
          new RegExp(`--processes is "${processes}"; it must be a whole number from 1 to 64\nhint: `),
        );
      }
    const { code, stderr } = await sluice(['work', '--once', '--processes', '2'], env).ended;
    assert.deepEqual([code, /--once works in one process/.test(stderr)], [2, true]);
  });

  it('says once what is wrong, and ends with 1', async (t) => {
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(0, '127.0.0.1', resolve));
    t.after(() => squatter.close());
    const { port } = squatter.address() as { port: number };
    const taken = await sluice(['serve', '--processes', '2'], { ...env, SLUICE_PORT: String(port) }).ended;
    assert.equal(taken.code, 1);
    assert.equal(taken.stderr.match(/Port \d+ is taken/g)?.length, 1, taken.stderr);
    const missing = await sluice(['serve', '--processes', '2'], { ...env, DB2_URL: '' }).ended;
    assert.equal(missing.code, 1);
    assert.equal(missing.stderr.match(/Set DB2_URL/g)?.length, 1, missing.stderr);
  });

  it('goes on with one when the other is killed, and starts a new one', async () => {
    const served = await serve(env, '--processes', '2');
    const before = await makers(served.url);
    const [victim = 0, other] = membersOf(served);
    process.kill(victim, 'SIGKILL');
    await served.said(/"message":"a process ended, and is started again".*"signal":"SIGKILL"/);
    const meanwhile = await makers(served.url, 5);
    assert.ok([...meanwhile].some((maker) => before.has(maker)));
    await until('a new process answers', async () => {
      const now = await makers(served.url, 4);
      return now.size === 2 && [...now].some((maker) => !before.has(maker));
    });
    assert.ok(membersOf(served).includes(other ?? 0), 'the other one was left alone');
    await stop(served);
  });

  it('keeps its port when all are killed, also where it was any free one', async () => {
    const served = await serve(env, '--processes', '2');
    for (const pid of membersOf(served)) process.kill(pid, 'SIGKILL');
    await until(
      'both answer again',
      async () => (await makers(served.url, 4).catch(() => new Set())).size === 2,
    );
    await stop(served);
  });

  it('ends with its supervisor, however that ends', async () => {
    const served = await serve(env, '--processes', '2');
    const members = membersOf(served);
    served.child.kill('SIGKILL');
    await served.ended;
    await until('no member is left', () => !members.some(isAlive));
  });

  it('restarts one at a time on SIGHUP, and no request under load fails', async () => {
    const served = await serve(env, '--processes', '2');
    const before = await makers(served.url);
    const failures: string[] = [];
    const seen = new Set<string>();
    let isOver = false;
    let answers = 0;
    /** Half of the lanes keep their connection, half open one for each request. */
    const lane = async (number: number): Promise<void> => {
      const agent = new Agent({ keepAlive: number % 2 === 0, maxSockets: 1 });
      for (let turn = 0; !isOver; turn++) {
        const body = { user_id: `lane ${number}`, request_id: `${number}-${turn}` };
        await claim(served.url, 'show', body, {}, agent).then(
          (answer) => {
            seen.add(makerOf(answer));
            answers++;
            if (answer.status !== 201) failures.push(`${answer.status} ${answer.text}`);
          },
          (error: Error) => failures.push(`lane ${number}: ${error.message}`),
        );
      }
      agent.destroy();
    };
    const lanes = Array.from({ length: LANES }, (_, number) => lane(number));
    await until('both work', () => seen.size === 2);
    served.child.kill('SIGHUP');
    await served.said(/"message":"all processes were restarted","processes":2/);
    isOver = true;
    await Promise.all(lanes);
    assert.deepEqual(failures, []);
    const now = await makers(served.url);
    assert.equal(now.size, 2);
    assert.ok(![...now].some((maker) => before.has(maker)), 'none of the old ones is left');
    assert.ok(answers > 100, `${answers} answers`);
    const { stderr } = await stopped(served);
    const order = [...stderr.matchAll(/"message":"(server listens|server stopped)".*?"process":(\d)/g)];
    assert.deepEqual(
      order.slice(2, 6).map(([, what, number]) => `${what} ${number}`),
      ['server stopped 1', 'server listens 1', 'server stopped 2', 'server listens 2'],
    );
  });

  const stopped = async (served: Awaited<ReturnType<typeof serve>>) => {
    served.child.kill('SIGTERM');
    const ended = await served.ended;
    assert.equal(ended.code, 0, ended.stderr);
    return ended;
  };

  /** Sessions that are at a claim now. */
  const claiming = async (): Promise<number> => {
    const { rows } = await observer.query(
      `select count(*)::int as n from pg_stat_activity where application_name like 'sluice-claims%' and state = 'active'`,
    );
    return rows[0].n;
  };

  it('answers on SIGTERM what it has taken, also where the whole group is told, and leaves no process', async () => {
    const served = await serve(env, '--processes', '2');
    const members = membersOf(served);
    await db1.query('begin');
    await db1.query('lock table public.claims in access exclusive mode');
    const asked = Array.from({ length: 8 }, (_, number) =>
      claim(served.url, 'show', { user_id: 'patient', request_id: `patient ${number}` }),
    );
    await until('claims of both wait', async () => (await claiming()) >= 2);
    // As systemd does it.
    for (const pid of [served.child.pid ?? 0, ...members]) process.kill(pid, 'SIGTERM');
    await db1.query('rollback');
    assert.deepEqual(
      (await Promise.all(asked)).map(({ status }) => status),
      Array(8).fill(201),
    );
    const { code, stderr } = await served.ended;
    assert.equal(code, 0, stderr);
    assert.deepEqual(members.filter(isAlive), []);
  });

  it('ends at once at the second signal', async () => {
    const served = await serve(env, '--processes', '2');
    const members = membersOf(served);
    await db1.query('begin');
    await db1.query('lock table public.claims in access exclusive mode');
    const asked = claim(served.url, 'show', { user_id: 'hasty' }).catch((error: Error) => error);
    await until('the claim waits', async () => (await claiming()) >= 1);
    served.child.kill('SIGTERM');
    // Another signal than the first: two of one kind that come at once are one.
    served.child.kill('SIGINT');
    const { code } = await served.ended;
    await db1.query('rollback');
    assert.equal(code, 1);
    await asked;
    await until('no member is left', () => !members.some(isAlive));
  });

  it('shows the numbers of both as one, which do not fall when one is killed or restarted', async () => {
    const served = await serve(env, '--processes', '2');
    const byMaker = new Map<string, number>();
    for (let number = 0; number < 20; number++) {
      const answer = await claim(served.url, 'show', { user_id: 'counted', request_id: `counted ${number}` });
      byMaker.set(makerOf(answer), (byMaker.get(makerOf(answer)) ?? 0) + 1);
    }
    assert.equal(byMaker.size, 2, 'so neither has counted all');
    const claimed = 'sluice_claims_total{outcome="claimed"}';
    // Whichever process is asked; the page of a process is a second old at most.
    for (let time = 0; time < 4; time++) assert.equal(await metric(served.url, claimed), 20);
    assert.equal(await metric(served.url, 'sluice_claim_batch_size_count'), 20);
    assert.equal(await metric(served.url, 'sluice_processes'), 2);
    assert.equal(await metric(served.url, 'sluice_intake_up'), 1, 'what a database says is not added');

    process.kill(membersOf(served)[0] ?? 0, 'SIGKILL');
    await served.said(/"message":"a process ended/);
    assert.equal(await metric(served.url, claimed), 20, 'what the dead one had counted stays');
    await until('two are there', async () => (await metric(served.url, 'sluice_processes')) === 2);
    await claim(served.url, 'show', { user_id: 'counted', request_id: 'after the kill' });
    await until('it counts on', async () => (await metric(served.url, claimed)) === 21);

    await claim(served.url, 'show', { user_id: 'counted', request_id: 'not shown before the restart' });
    served.child.kill('SIGHUP');
    await served.said(/"message":"all processes were restarted"/);
    assert.equal(await metric(served.url, claimed), 22);
    await stop(served);
  });

  it('samples once for both, and both show the samples', async () => {
    const calls = async (): Promise<number> => {
      await db1.query('select pg_stat_force_next_flush()');
      const { rows } = await db1.query(
        `select coalesce(sum(calls), 0)::int as n from pg_stat_user_functions where funcname = 'take_sample'`,
      );
      return rows[0].n;
    };
    const samples = async (): Promise<number> =>
      (await db1.query('select count(*)::int as n from audit.samples')).rows[0].n;
    const two = await serve(env, '--processes', '2');
    const [asked, stood] = [await calls(), await samples()];
    const streams = await Promise.all(
      [0, 1].map(() => openEvents(`${two.url}/admin/live`, bearer(ADMIN_KEY))),
    );
    const heard = await Promise.all(streams.map(async (stream) => (await stream.next('sample')).data.at));
    assert.equal(heard.length, 2);
    await until('four samples were taken', async () => (await samples()) >= stood + 4);
    const [askedTwo, tookTwo] = [(await calls()) - asked, (await samples()) - stood];
    for (const stream of streams) stream.leave();
    await stop(two);
    // A session may tell of its last call a moment late.
    assert.ok(askedTwo <= tookTwo + 1, `${askedTwo} questions for ${tookTwo} samples`);

    const servers = [await serve(env), await serve(env)];
    const [before, begun] = [await calls(), await samples()];
    await until('four samples were taken', async () => (await samples()) >= begun + 4);
    await until('two servers asked twice as often', async () => {
      const took = (await samples()) - begun;
      return (await calls()) - before >= took + 3;
    });
    for (const server of servers) await stop(server);
  });

  it('ends a session in both when an operator signs out at one', async () => {
    const served = await serve(env, '--processes', '2');
    for (let time = 0; time < 5; time++) {
      const signedIn = await ask(`${served.url}/admin/session`, { method: 'POST', body: { key: ADMIN_KEY } });
      const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? '';
      const statuses = async () =>
        (
          await Promise.all(
            [0, 1, 2, 3].map(() => ask(`${served.url}/admin/session`, { headers: { cookie } })),
          )
        ).map(({ status }) => status);
      assert.deepEqual(await statuses(), [200, 200, 200, 200]);
      const headers = { cookie, 'x-sluice-csrf': '1' };
      assert.equal((await ask(`${served.url}/admin/session`, { method: 'DELETE', headers })).status, 204);
      assert.deepEqual(await statuses(), [401, 401, 401, 401]);
    }
    await stop(served);
  });
});
