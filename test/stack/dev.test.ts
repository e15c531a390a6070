import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { withClient } from '../../src/migrate/sql.ts';
import { isAlive } from '../../src/stack/processes.ts';
import { type Dev, notedPid, PROJECT, processesUnder, readEnv, startDev, stopDev } from '../support/dev.ts';

const CHILDREN = ['db1-postgres', 'db2-postgres', 'db1-postgrest', 'db2-postgrest', 'stripe-stand-in'];

const sluice = (dir: string, ...args: string[]) =>
  spawnSync(process.execPath, [join(PROJECT, 'bin', 'sluice.js'), ...args], {
    cwd: '/',
    env: { ...process.env, SLUICE_DIR: dir },
    encoding: 'utf8',
  });

// One stack, taken through its life in the order a person would: the tests build on one another.
describe('npm start', () => {
  let home: string;
  let dir: string;
  let dev: Dev;

  const claims = async () =>
    withClient(readEnv(dir).DB1_URL ?? '', async (client) => {
      return (await client.query('select count(*)::int as n from public.claims')).rows[0].n;
    });

  before(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-dev-')));
    // Root's server user must be able to get here; an ordinary user is at home anyway.
    spawnSync('chmod', ['755', home]);
    dir = join(home, '.sluice');
    dev = startDev({ dir });
    await dev.ready;
  });
  after(async () => {
    await stopDev(dev, 'SIGKILL');
    sluice(dir, 'reset');
    rmSync(home, { recursive: true });
  });

  test('the curl lines it prints claim a slot, through REST and through the door', async () => {
    const curls = dev.output().match(/ {2}curl (?:.*\\\n)*.*\n/g) ?? [];
    assert.equal(curls.length, 2);
    const run = (command: string) =>
      spawnSync('sh', ['-c', `. '${join(dir, 'env')}'; ${command.trim()} -s -w '\n%{http_code}'`], {
        encoding: 'utf8',
      }).stdout.split('\n');
    const [slot, restStatus] = run(curls[0] ?? '');
    assert.equal(restStatus, '200');
    assert.match(JSON.parse(slot ?? ''), /^[0-9a-f-]{36}$/);
    const [first, created] = run(curls[1] ?? '');
    const [again, repeated] = run(curls[1] ?? '');
    assert.deepEqual([created, repeated], ['201', '200']);
    assert.equal(JSON.parse(again ?? '').claim_id, JSON.parse(first ?? '').claim_id);
    assert.equal(await claims(), 2);
  });

  test('the env file has every name, is private, and its keys open the API', async () => {
    assert.equal(statSync(join(dir, 'env')).mode & 0o777, 0o600);
    assert.equal(statSync(join(dir, 'secrets.json')).mode & 0o777, 0o600);
    const env = readEnv(dir);
    assert.deepEqual(Object.keys(env), [
      'SLUICE_URL',
      'SLUICE_ADMIN_KEY',
      'SLUICE_HOOK_SECRET',
      'SLUICE_TICKET_SECRET',
      'DB1_URL',
      'DB2_URL',
      'DB1_SUPABASE_URL',
      'DB1_SUPABASE_ANON_KEY',
      'DB1_SUPABASE_SERVICE_ROLE_KEY',
      'DB2_SUPABASE_URL',
      'DB2_SUPABASE_ANON_KEY',
      'DB2_SUPABASE_SERVICE_ROLE_KEY',
      'STRIPE_WEBHOOK_SECRET',
      'TWILIO_AUTH_TOKEN',
      'WHATSAPP_APP_SECRET',
      'WHATSAPP_VERIFY_TOKEN',
      'DAILY_WEBHOOK_SECRET',
      'OPS_SITE_ID',
      'OPS_SITE_SECRET',
      'STRIPE_API_URL',
      'STRIPE_API_KEY',
    ]);
    assert.equal(new Set(Object.values(env)).size, Object.keys(env).length);
    const tickets = (key: string | undefined) =>
      fetch(`${env.DB2_SUPABASE_URL}/rest/v1/confirmed_tickets?select=*`, { headers: { apikey: key ?? '' } });
    assert.equal((await tickets(env.DB2_SUPABASE_SERVICE_ROLE_KEY)).status, 200);
    assert.equal((await tickets(env.DB1_SUPABASE_SERVICE_ROLE_KEY)).status, 401, "the other project's key");
  });

  test('it prints no key and no password, and says where they are', () => {
    const isSecret = (name: string) => /KEY|SECRET|TOKEN/.test(name);
    const secrets = Object.entries(readEnv(dir)).flatMap(([name, value]) => {
      if (/^DB\d_URL$/.test(name)) return [new URL(value).password];
      return isSecret(name) ? [value] : [];
    });
    assert.equal(secrets.length, 16);
    for (const secret of secrets) assert.ok(!dev.output().includes(secret), 'a secret was printed');
    assert.match(dev.output(), /the key: grep SLUICE_ADMIN_KEY \S+\/env\n/);
  });

  test('a second start in the same folder is refused with the first one’s process id', async () => {
    const second = startDev({ dir });
    assert.equal(await second.ended, 1);
    assert.match(second.output(), new RegExp(`already running \\(pid ${dev.child.pid}\\)`));
    assert.match(second.output(), /hint: .*SLUICE_DIR/);
  });

  test('a reset is refused while it runs', () => {
    const reset = sluice(dir, 'reset');
    assert.equal(reset.status, 1);
    assert.match(reset.stderr, /already running/);
    assert.ok(existsSync(join(dir, 'secrets.json')));
  });

  test('after a SIGKILL the next start ends what was left over and has everything that was committed', async () => {
    const left = CHILDREN.map((name) => notedPid(dir, name));
    const before = readEnv(dir);
    await stopDev(dev, 'SIGKILL');
    assert.deepEqual(
      left.map(isAlive),
      CHILDREN.map(() => true),
      'a SIGKILL of the parent leaves them running',
    );
    // Of a shell that has read the env file: its key of Stripe is the stand-in's.
    dev = startDev({ dir, env: before });
    await dev.ready;
    assert.deepEqual(
      left.map(isAlive),
      CHILDREN.map(() => false),
    );
    assert.match(dev.output(), /stopped db1-postgres, left over/);
    assert.equal(await claims(), 2);
    assert.equal(readEnv(dir).DB1_SUPABASE_ANON_KEY, before.DB1_SUPABASE_ANON_KEY);
    assert.match(dev.output(), /Stripe .*a stand-in/);
  });

  test('Ctrl-C ends it with exit code 0 and leaves neither a process nor the env file', async () => {
    const children = CHILDREN.map((name) => notedPid(dir, name));
    assert.equal(await stopDev(dev, 'SIGINT'), 0);
    assert.deepEqual(
      children.map(isAlive),
      CHILDREN.map(() => false),
    );
    assert.deepEqual(processesUnder(dir), []);
    assert.equal(existsSync(join(dir, 'env')), false);
  });

  test('ends well after the reader of its output has left, a closed window or `| head`', async () => {
    dev = startDev({ dir });
    await dev.ready;
    dev.child.stdout?.destroy();
    dev.child.stderr?.destroy();
    assert.equal(await stopDev(dev, 'SIGHUP'), 0);
    assert.deepEqual(processesUnder(dir), []);
  });

  test('a taken port stops the start with the port and the variable to set, and leaves nothing running', async () => {
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(0, '127.0.0.1', resolve));
    const address = squatter.address();
    assert.ok(address && typeof address === 'object');
    for (const variable of ['SLUICE_PORT', 'DB1_API_PORT', 'DB2_API_PORT', 'DB1_PORT', 'DB2_PORT']) {
      const refused = startDev({ dir, env: { [variable]: String(address.port) } });
      assert.equal(await refused.ended, 1);
      assert.match(refused.output(), new RegExp(`error: port ${address.port}, wanted by .*, is taken`));
      assert.match(refused.output(), new RegExp(`hint: .*${variable}=`));
    }
    await new Promise((resolve) => squatter.close(resolve));
    assert.deepEqual(processesUnder(dir), []);
    dev = startDev({ dir, env: { DB2_PORT: String(address.port) } });
    await dev.ready;
    assert.equal(new URL(readEnv(dir).DB2_URL ?? '').port, String(address.port), 'once it is free');
    await stopDev(dev, 'SIGINT');
  });

  test('a signal while it starts ends the start with exit code 0', async () => {
    dev = startDev({ dir });
    await new Promise<void>((resolve) => {
      dev.child.stdout?.on('data', () => {
        if (dev.output().includes('Starting Sluice')) resolve();
      });
    });
    assert.equal(await stopDev(dev, 'SIGTERM'), 0);
    assert.deepEqual(processesUnder(dir), []);
  });

  test('a reset removes the data, and a second one has nothing to do', () => {
    const reset = sluice(dir, 'reset');
    assert.equal(reset.status, 0, reset.stderr);
    assert.equal(existsSync(dir), false);
    assert.match(sluice(dir, 'reset').stdout, /Nothing to remove/);
  });
});
