// docs/restore.md, followed word for word: the blocks of the page that are marked run here as they stand, on two servers of
// Debian's Postgres.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import { freePort } from '../../src/stack/ports.ts';
import { giveToServer, makeServerDir, serverUser } from '../../src/stack/server_user.ts';
import { ensureDebianPackages } from '../pgtap/debian_packages.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { PROJECT } from '../support/dev.ts';
import { claimMany } from '../work/support.ts';

const BIN = '/usr/lib/postgresql/15/bin';
const SLUICE = join(PROJECT, 'bin', 'sluice.js');
const POOL = 'restored';
const SLOTS = 100;
/** Claims before the moment, after it with a ticket, and after it without one. */
const [EARLY, LATE, QUEUED] = [10, 20, 5];

type Side = { name: 'db1' | 'db2'; env: Record<string, string> };

const PAGE = readFileSync(join(PROJECT, 'docs', 'restore.md'), 'utf8');
const BLOCKS = new Map(
  [...PAGE.matchAll(/^<!-- walk: (\w+) -->\n```sh\n([\s\S]*?)^```/gm)].map(([, name = '', text = '']) => [
    name,
    text,
  ]),
);

/** Why Postgres 15 is missing: this is not Debian, or the tests may not install packages. */
const reason = await ensureDebianPackages(['postgresql-15']);

describe('the restore page', { skip: reason ?? false }, () => {
  let dir: string;
  let sides: Side[] = [];
  let urls: Record<string, string>;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-restore-'));
    giveToServer(dir);
    sides = await Promise.all((['db1', 'db2'] as const).map((name) => startServer(dir, name)));
    urls = Object.fromEntries(sides.map(({ name, env }) => [`${name.toUpperCase()}_URL`, env.DB_URL ?? '']));
    asOperator('npx sluice migrate');
    for (const side of sides) onServer(side, block('prepare'));
    for (const side of sides) onServer(side, block('backup'));
    await withDb1((client) => putOnSale(client, POOL, SLOTS));
  });
  after(() => {
    for (const { env } of sides)
      for (const folder of [env.PGDATA ?? '', `${env.PGDATA}.before`])
        if (existsSync(join(folder, 'postmaster.pid')))
          spawnSync(join(BIN, 'pg_ctl'), ['-D', folder, '-w', '-m', 'immediate', 'stop'], {
            ...serverUser,
            cwd: '/',
          });
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true });
  });

  const withDb1 = <T>(use: (client: pg.Client) => Promise<T>) => withClient(urls.DB1_URL ?? '', use);
  const withDb2 = <T>(use: (client: pg.Client) => Promise<T>) => withClient(urls.DB2_URL ?? '', use);
  const asOperator = (script: string): string =>
    shell(`npx() { shift; '${process.execPath}' '${SLUICE}' "$@"; }\n${script}`, urls);
  const onServer = (side: Side, script: string, more: Record<string, string> = {}): string =>
    shell(script, { ...side.env, ...more }, serverUser);
  const restore = (name: Side['name'], target: string): string => {
    const side = sides.find((one) => one.name === name) as Side;
    for (const step of ['save', 'restore', 'writes']) onServer(side, block(step), { TARGET: target });
    return asOperator(block('agree'));
  };
  const tickets = () => withDb2((client) => number(client, 'select count(*) from public.confirmed_tickets'));

  test('brings DB1 back to a moment, and the sold slots with it; queued claims and request ids are lost', async () => {
    await withDb1((client) => claimMany(client, POOL, EARLY));
    asOperator('npx sluice work --once');
    const target = await withDb1(moment);
    await withDb1((client) => claimWithIds(client, LATE));
    asOperator('npx sluice work --once');
    await withDb1((client) => claimMany(client, POOL, QUEUED));

    const said = restore('db1', target);
    assert.equal(said.match(/^ticket_(without_claim|on_sale) /gm)?.length, 2 * LATE, said);
    assert.match(said, /No differences: both databases tell the same story\.\n$/);
    const [claims, free, again] = await withDb1(async (client) => [
      await number(
        client,
        "select count(*) from public.claims where state = 'committed' and freed_at is null",
      ),
      await number(client, `select available from public.pool_status('${POOL}')`),
      await claimWithIds(client, 1),
    ]);
    assert.deepEqual([claims, free, await tickets()], [EARLY + LATE, SLOTS - EARLY - LATE, EARLY + LATE]);
    assert.deepEqual(again, ['claimed'], 'the page says that a request id after the moment is forgotten');
    asOperator('npx sluice work --once');
    assert.equal(await tickets(), EARLY + LATE + 1);
  });

  test('brings DB2 back to a moment, and the tickets of committed claims are carried again', async () => {
    const before = await tickets();
    const target = await withDb2(moment);
    await withDb1((client) => claimMany(client, POOL, LATE));
    asOperator('npx sluice work --once');
    assert.equal(await tickets(), before + LATE);

    const said = restore('db2', target);
    assert.equal(await tickets(), before, 'the tickets after the moment are gone');
    assert.match(said, /^claim_without_ticket /m);
    assert.match(said, /No differences: both databases tell the same story\.\n$/);
    asOperator('npx sluice work --once');
    assert.equal(await tickets(), before + LATE);
    assert.match(asOperator('npx sluice reconcile'), /^No differences/);
  });

  test('is walked whole: each block of shell is run here, or is marked as an example', () => {
    const marks = [...PAGE.matchAll(/^(.*)\n```(?:sh|sql)\n/gm)].map(([, mark]) => mark);
    assert.deepEqual([...BLOCKS.keys()], ['prepare', 'backup', 'save', 'restore', 'writes', 'agree']);
    for (const mark of marks) assert.match(mark ?? '', /^<!-- (walk: \w+|example) -->$/);
  });
});

function block(name: string): string {
  const text = BLOCKS.get(name);
  if (text === undefined) throw new Error(`docs/restore.md has no block ${name}`);
  return text;
}

async function startServer(dir: string, name: Side['name']): Promise<Side> {
  const own = join(dir, name);
  makeServerDir(own);
  const port = await freePort();
  const PGDATA = join(own, 'data');
  const env = {
    PATH: `${BIN}:${process.env.PATH}`,
    HOME: own,
    PGDATA,
    BACKUPS: join(own, 'backups'),
    DB_URL: `postgres://postgres@127.0.0.1:${port}/postgres`,
  };
  shell(
    `initdb -D "$PGDATA" -U postgres -A trust
     echo "port = ${port}
     listen_addresses = '127.0.0.1'
     unix_socket_directories = ''" >> "$PGDATA/postgresql.conf"
     pg_ctl -D "$PGDATA" -w -l "$PGDATA/server.log" start`,
    env,
    serverUser,
  );
  return { name, env };
}

/** Its output; throws with all of it where a line fails. */
function shell(
  script: string,
  env: Record<string, string>,
  user: { uid?: number; gid?: number } = {},
): string {
  const { status, stdout, stderr } = spawnSync('bash', ['-eu', '-c', script], {
    ...user,
    cwd: '/',
    encoding: 'utf8',
    env: { PATH: process.env.PATH ?? '', ...env },
    // A server that was started keeps what it inherited open.
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  assert.equal(status, 0, `${script}\n${stdout}${stderr}`);
  return stdout;
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await openClient(url);
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function number(client: pg.Client, text: string): Promise<number> {
  return (await client.query(`select (${text})::int as n`)).rows[0].n;
}

async function moment(client: pg.Client): Promise<string> {
  return (await client.query('select clock_timestamp()::text as now')).rows[0].now;
}

async function claimWithIds(client: pg.Client, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, at) => `request ${at}`);
  const { rows } = await client.query(
    'select outcome from public.claim_batch($1::text[], $2::text[], $3::text[], $4::boolean[])',
    [ids.map(() => POOL), ids, ids, ids.map(() => true)],
  );
  return rows.map(({ outcome }) => outcome);
}
