import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { freePort } from '../../src/stack/ports.ts';
import { isAlive } from '../../src/stack/processes.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { claimMany, type Sluice, standing } from '../work/support.ts';
import { envOf, killLeft, membersOf, metric, start, stop, until } from './support.ts';

const CLAIMS = 400;
const MANY = 20 * CLAIMS;
/** As in core/bridge/targets.ts. */
const CALL_LIMIT = 32;

describe('sluice work --processes 2', () => {
  let databases: TestDatabases;
  let env: Record<string, string>;
  let db1: pg.Client;
  let db2: pg.Client;
  before(async () => {
    databases = await startDatabases();
    env = envOf(databases);
    [db1, db2] = [await openClient(databases.db1.url), await openClient(databases.db2.url)];
  });
  after(async () => {
    killLeft();
    await Promise.all([db1?.end(), db2?.end()]);
    await databases?.stop();
  });

  /** When all processes of the command work. */
  const work = async (more: Record<string, string> = {}, ...args: string[]): Promise<Sluice> => {
    const started = start(['work', ...args], { ...env, ...more });
    const said = args.includes('--processes') ? [',"process":1', ',"process":2'] : [''];
    for (const which of said) await started.said(new RegExp(`"message":"workers started"${which}`));
    return started;
  };
  const carried = (pool: string, count: number) =>
    until('all is carried', async () => {
      const { committed, tickets, queued, dead } = await standing(db1, db2, pool);
      return committed === count && tickets === count && queued === 0 && dead === 0;
    });

  it('carries every claim once, with both, and shows what both did as one', async () => {
    await putOnSale(db1, 'both', MANY);
    const port = await freePort();
    const settings = { SLUICE_LOG: 'debug', SLUICE_METRICS_PORT: String(port) };
    const workers = await work(settings, '--processes', '2', '--batch', '5');
    // One alone could be quick enough for a few.
    let [claimed, haveBoth] = [0, false];
    const carrier = (number: number) => workers.said(new RegExp(`"message":"delivery","process":${number}`));
    void Promise.all([carrier(1), carrier(2)]).then(() => {
      haveBoth = true;
    });
    for (; !haveBoth && claimed < MANY; claimed += CLAIMS) await claimMany(db1, 'both', CLAIMS, claimed);
    await carried('both', claimed);
    const url = `http://127.0.0.1:${port}`;
    const committed = 'sluice_bridge_deliveries_total{outcome="committed"}';
    await until('the page shows all', async () => (await metric(url, committed)) === claimed);
    assert.equal(await metric(url, 'sluice_processes'), 2);
    const members = membersOf(workers);
    workers.child.kill('SIGTERM');
    const { code, stderr } = await workers.ended;
    assert.equal(code, 0);
    assert.deepEqual(members.filter(isAlive), []);
    const carriers = [...stderr.matchAll(/"message":"delivery","process":(\d)/g)].map(([, number]) => number);
    assert.equal(carriers.length, claimed);
    assert.deepEqual([...new Set(carriers)].sort(), ['1', '2']);
  });

  it('does what is to be done once in one process', async () => {
    const workers = await work({}, '--processes', '2');
    const { rows } = await db1.query(
      `select application_name, count(distinct client_port)::int as n from pg_stat_activity
       where application_name in ('sluice-scheduler', 'sluice-sealer', 'sluice-inbox-worker') group by 1`,
    );
    const one = await work({});
    const sealers = async () =>
      (
        await db1.query(
          `select count(*)::int as n from pg_stat_activity where application_name = 'sluice-sealer'`,
        )
      ).rows[0].n;
    assert.equal(rows.find(({ application_name }) => application_name === 'sluice-sealer')?.n, 1);
    await until('another command seals too', async () => (await sealers()) === 2);
    await stop(one);
    await stop(workers);
  });

  it('takes over what a killed process held, and starts another', async () => {
    await putOnSale(db1, 'killed', CLAIMS, { visibility_timeout_sec: 1 });
    const workers = await work({}, '--processes', '2', '--batch', '20', '--lease', '2');
    await claimMany(db1, 'killed', CLAIMS);
    const [victim = 0] = membersOf(workers);
    process.kill(victim, 'SIGKILL');
    await workers.said(/"message":"a process ended, and is started again"/);
    await carried('killed', CLAIMS);
    await until(
      'two are there',
      () => membersOf(workers).length === 2 && !membersOf(workers).includes(victim),
    );
    workers.child.kill('SIGHUP');
    await workers.said(/"message":"all processes were restarted"/);
    await stop(workers);
  });

  // Of a stop that is lost the supervisor makes an end by SIGKILL, which `stop` does not let pass.
  it('is restarted and stopped while a process still loads', { timeout: 90_000 }, async () => {
    const workers = await work({}, '--processes', '2');
    const killOne = async (): Promise<void> => {
      const [victim = 0] = membersOf(workers);
      process.kill(victim, 'SIGKILL');
      const isReplaced = () => membersOf(workers).length === 2 && !membersOf(workers).includes(victim);
      await until('another one loads', isReplaced);
    };
    await killOne();
    workers.child.kill('SIGHUP');
    await workers.said(/"message":"all processes were restarted"/);
    await killOne();
    await stop(workers);
  });

  it(`calls a hook ${CALL_LIMIT} times at once at most, where two commands do so twice as often`, async (t) => {
    let [open, most] = [0, 0];
    const hook = createServer(async (request, response) => {
      open++;
      most = Math.max(most, open);
      request.resume();
      await pause(400);
      open--;
      response.end('{}');
    });
    await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
    t.after(() => hook.close());
    const host = `127.0.0.1:${(hook.address() as AddressInfo).port}`;
    await db1.query('insert into intake.hook_allowed_hosts (host) values ($1)', [host]);
    const mostWith = async (pool: string, start: () => Promise<Sluice[]>): Promise<number> => {
      await putOnSale(db1, pool, CLAIMS, { commit_webhook_url: `http://${host}/commit` });
      await claimMany(db1, pool, CLAIMS);
      most = 0;
      const workers = await start();
      const committed = `select count(*)::int as n from public.claims where pool_id = $1 and state = 'committed'`;
      await until('all are committed', async () => (await db1.query(committed, [pool])).rows[0].n === CLAIMS);
      for (const one of workers) await stop(one);
      return most;
    };
    const together = await mostWith('hooked', async () => [await work({}, '--processes', '2')]);
    const apart = await mostWith('hooked twice', () => Promise.all([work(), work()]));
    assert.ok(together <= CALL_LIMIT && together > CALL_LIMIT / 2, `${together} at once`);
    assert.ok(apart > CALL_LIMIT, `${apart} at once with two commands`);
  });
});
