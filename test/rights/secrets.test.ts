// A stack that is used, at its most talkative, tells no secret: not in its databases, its logs, its answers, its commands'
// output, nor in the arguments of its processes.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Dev, readEnv, startDev, stopDev } from '../support/dev.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { sluice } from '../work/support.ts';
import {
  leaks,
  type Place,
  placesInDatabase,
  placesInFiles,
  placesInProcesses,
  type Secrets,
} from './sweep.ts';
import { askEverything, askGateway, shakeHands } from './usage.ts';

/** Meant to be seen: addresses, public keys, names and dates. */
const NO_SECRETS = /_URL$|_ANON_KEY$|^OPS_SITE_ID$|^opsSiteId$|^createdAt$/;
/** Where the secrets live; and the files of the databases, which are asked themselves. */
const HOMES = ['env', 'secrets.json', 'postgres/db1/data', 'postgres/db2/data'];
const POLL_MS = 20;
const DEADLINE_MS = 30_000;

describe('a stack that is used at its most talkative', () => {
  let home: string;
  let dir: string;
  let dev: Dev;
  let env: Record<string, string>;
  let secrets: Secrets;
  const session = {} as Record<'db1' | 'db2', Session>;
  const gathered: Place[] = [];
  let log = '';

  const run = async (args: string[], more: Record<string, string> = {}) => {
    const { stdout, stderr } = await sluice(args, { SLUICE_DIR: dir, SLUICE_LOG: 'debug', ...more }).ended;
    gathered.push([`output of sluice ${args.join(' ')}`, stdout + stderr]);
    return stdout + stderr;
  };

  /** What of ours is where others can look, now. */
  const everywhere = async (): Promise<Place[]> => [
    ...gathered,
    // Its standard output is left out: it hands the demo's keys to the person who started it.
    ['log of npm start', log],
    ...placesInFiles(dir, HOMES),
    ...placesInProcesses(),
    ...(await placesInDatabase('db1', session.db1)),
    ...(await placesInDatabase('db2', session.db2)),
  ];

  before(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-secrets-')));
    // Root's server user must be able to get here; an ordinary user is at home anyway.
    spawnSync('chmod', ['755', home]);
    dir = join(home, '.sluice');
    dev = startDev({ dir, env: { SLUICE_LOG: 'debug' } });
    dev.child.stderr?.on('data', (text: string) => {
      log += text;
    });
    await dev.ready;
    env = readEnv(dir);
    const kept = JSON.parse(readFileSync(join(dir, 'secrets.json'), 'utf8')) as Record<string, string>;
    const named = Object.entries({ ...env, ...kept }).filter(([name]) => !NO_SECRETS.test(name));
    secrets = Object.fromEntries(named);
    for (const side of ['db1', 'db2'] as const)
      session[side] = await openSession(env[`${side.toUpperCase()}_URL`] ?? '');
  });
  after(async () => {
    await session.db1?.close();
    await session.db2?.close();
    await stopDev(dev, 'SIGINT');
    rmSync(home, { recursive: true, force: true });
  });

  test('every secret there is will be sought', () => {
    assert(Object.keys(secrets).length >= 16, Object.keys(secrets).join());
    for (const name of [
      'SLUICE_ADMIN_KEY',
      'DB1_SUPABASE_SERVICE_ROLE_KEY',
      'postgresPassword',
      'db2JwtSecret',
    ])
      assert(secrets[name], name);
  });

  test('it is used in every way there is', async () => {
    gathered.push(...(await askEverything(env.SLUICE_URL ?? '', env.SLUICE_ADMIN_KEY ?? '')));
    for (const side of ['DB1', 'DB2'])
      gathered.push(
        ...(await askGateway(
          env[`${side}_SUPABASE_URL`] ?? '',
          env[`${side}_SUPABASE_SERVICE_ROLE_KEY`] ?? '',
        )),
      );
    for (const base of [
      `${env.SLUICE_URL}/webhooks/whatsapp`,
      `${env.DB1_SUPABASE_URL}/functions/v1/webhooks/whatsapp`,
    ]) {
      const [right, wrong] = await shakeHands(base, env.WHATSAPP_VERIFY_TOKEN ?? '');
      assert.match(right?.[1] ?? '', /^200 .*77$/, 'the handshake works');
      assert.match(wrong?.[1] ?? '', /^40[13] /);
      gathered.push(...[right, wrong].filter((place) => place !== undefined));
    }
    const outputs = await Promise.all([
      run(['webhooks', 'send', 'stripe', 'payment_intent.succeeded']),
      run(['webhooks', 'send', 'twilio', 'call.completed']),
      run(['calls', 'send']),
      run(['doctor']),
      run(['doctor', '--json']),
      run(['status', '--json']),
    ]);
    for (const output of outputs) assert.notEqual(output.trim(), '');
    assert.match(log, /"level":"debug"/, 'the server and the workers have talked');
    assert.match(
      readFileSync(join(dir, 'run', 'webhooks.log'), 'utf8'),
      /"level":"/,
      'and so have the functions',
    );
  });

  test('commands that are given a wrong address do not repeat the password in it', async () => {
    const password = secrets.postgresPassword ?? '';
    const calls: [command: string, address: string][] = [
      ['doctor', `postgres://postgres:${password}@127.0.0.1:1/postgres`],
      ['doctor', `postgres://postgres:${password}@[::1/postgres`],
      ['serve', `postgres://postgres:${password}@127.0.0.1:port/postgres`],
      ['migrate', `host=127.0.0.1 password=${password}`],
    ];
    const outputs = await Promise.all(
      calls.map(([command, address]) =>
        run([command], { DB1_URL: address, DB2_URL: address, SLUICE_PORT: '0' }),
      ),
    );
    for (const output of outputs) assert.match(output, /\S/);
  });

  test('the request that wakes the bridge worker leaves no key behind, neither waiting nor in its answer', async () => {
    // In the place of Supabase's Vault: a view that shows this session what this session was told, and keeps nothing.
    await session.db1.client.query(
      `create schema vault;
       create view vault.decrypted_secrets as
       select name, current_setting('test.' || name, true) as decrypted_secret
       from unnest('{bridge_worker_url,service_role_key}'::text[]) name`,
    );
    const url = `${env.DB1_SUPABASE_URL}/functions/v1/bridge-worker`;
    await session.db1.rows(`select set_config('test.bridge_worker_url', $1, false)`, [url]);
    await session.db1.rows(`select set_config('test.service_role_key', $1, false)`, [
      env.DB1_SUPABASE_SERVICE_ROLE_KEY,
    ]);
    // In one transaction: the workers see the message only when the request is there, too.
    await session.db1.client.query('begin');
    await session.db1.value(`select public.intake_queue_send('{"pool_id": "p"}')`);
    const id = await session.db1.value<string>('select intake.trigger_drain()');
    const waiting = await session.db1.value<string>(
      'select q::text from net.http_request_queue q where id = $1',
      [id],
    );
    assert.equal(leaks([['the queue', waiting]], secrets).length, 1, 'it has to be there until it is sent');
    await session.db1.client.query('commit');
    const answered = 'select count(*)::int from net._http_response where id = $1 and status_code = 200';
    const until = Date.now() + DEADLINE_MS;
    while ((await session.db1.value(answered, [id])) !== 1) {
      assert(Date.now() < until, 'the request was never answered');
      await delay(POLL_MS);
    }
    assert.equal(await session.db1.value('select count(*)::int from net.http_request_queue'), 0);
    await session.db1.rows('drop schema vault cascade');
  });

  test('no secret is anywhere but where secrets are kept', async () => {
    assert.deepEqual(leaks(await everywhere(), secrets), []);
  });

  describe('a secret that is where it should not be would be found', () => {
    const name = 'SLUICE_ADMIN_KEY';
    const found = async () => leaks(await everywhere(), { [name]: secrets[name] ?? '' });

    /** Puts it there, looks, takes it away. */
    async function planted(
      where: string,
      plant: (secret: string) => unknown,
      remove: () => unknown,
    ): Promise<void> {
      await plant(secrets[name] ?? '');
      const seen = await found();
      await remove();
      assert.deepEqual(seen, [`${where}: ${name}`]);
    }

    test('in a cron job', () =>
      planted(
        'db1 cron.job',
        (secret) =>
          session.db1.rows(`select cron.schedule('leaky', '0 0 1 1 *', $1)`, [`select '${secret}'`]),
        () => session.db1.rows(`select cron.unschedule('leaky'::text)`),
      ));

    test('in a setting', () =>
      planted(
        'db2 kept settings',
        (secret) => session.db2.client.query(`alter role anon set app.note = '${secret}'`),
        () => session.db2.client.query('alter role anon reset app.note'),
      ));

    test('in a log', () => {
      const file = join(dir, 'run', 'planted.log');
      return planted(
        'file run/planted.log',
        (secret) => writeFileSync(file, `authorization: Basic ${Buffer.from(secret).toString('base64')}`),
        () => rmSync(file),
      );
    });

    test('in an answer', () =>
      planted(
        'an answer',
        (secret) => gathered.push(['an answer', `{"hint":"${encodeURIComponent(secret)}"}`]),
        () => gathered.pop(),
      ));

    test('in the arguments of a process', async () => {
      let child: ChildProcess | undefined;
      await planted(
        'arguments of a process',
        async (secret) => {
          child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', secret], { stdio: 'ignore' });
          await once(child, 'spawn');
        },
        async () => {
          child?.kill('SIGKILL');
          if (child) await once(child, 'exit');
        },
      );
    });

    test('and nothing of it is left', async () => {
      assert.deepEqual(await found(), []);
    });
  });
});
