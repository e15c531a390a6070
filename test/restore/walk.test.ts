// docs/restore.md, followed word for word: the blocks of the page that are marked run here as they stand, on two servers of
// Debian's Postgres. Those about paid orders run in paid.test.ts.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import { ensureDebianPackages } from '../pgtap/debian_packages.ts';
import { putOnSale } from '../server/support.ts';
import { claimMany } from '../work/support.ts';
import { BLOCKS, block, moment, number, PAGE, TwoServers } from './support.ts';

const POOL = 'restored';
const SLOTS = 100;
/** Claims before the moment, after it with a ticket, and after it without one. */
const [EARLY, LATE, QUEUED] = [10, 20, 5];

/** Why Postgres 15 is missing: this is not Debian, or the tests may not install packages. */
const reason = await ensureDebianPackages(['postgresql-15']);

describe('the restore page', { skip: reason ?? false }, () => {
  let servers: TwoServers;
  before(async () => {
    servers = await TwoServers.start();
    await servers.withDb1((client) => putOnSale(client, POOL, SLOTS));
  });
  after(() => servers?.stop());

  const restore = async (name: 'db1' | 'db2', target: string): Promise<string> => {
    await servers.restore(name, target);
    return servers.asOperator(block('agree'));
  };
  const work = () => servers.asOperator('npx sluice work --once');
  const tickets = () =>
    servers.withDb2((client) => number(client, 'select count(*) from public.confirmed_tickets'));

  test('brings DB1 back to a moment, and the sold slots with it; queued claims and request ids are lost', async () => {
    await servers.withDb1((client) => claimMany(client, POOL, EARLY));
    await work();
    const target = await servers.withDb1(moment);
    await servers.withDb1((client) => claimWithIds(client, LATE));
    await work();
    await servers.withDb1((client) => claimMany(client, POOL, QUEUED));

    const said = await restore('db1', target);
    assert.equal(said.match(/^ticket_(without_claim|on_sale) /gm)?.length, 2 * LATE, said);
    assert.match(said, /No differences: both databases tell the same story\.\n$/);
    const [claims, free, again] = await servers.withDb1(async (client) => [
      await number(
        client,
        "select count(*) from public.claims where state = 'committed' and freed_at is null",
      ),
      await number(client, `select available from public.pool_status('${POOL}')`),
      await claimWithIds(client, 1),
    ]);
    assert.deepEqual([claims, free, await tickets()], [EARLY + LATE, SLOTS - EARLY - LATE, EARLY + LATE]);
    assert.deepEqual(again, ['claimed'], 'the page says that a request id after the moment is forgotten');
    await work();
    assert.equal(await tickets(), EARLY + LATE + 1);
  });

  test('brings DB2 back to a moment, and the tickets of committed claims are carried again', async () => {
    const before = await tickets();
    const target = await servers.withDb2(moment);
    await servers.withDb1((client) => claimMany(client, POOL, LATE));
    await work();
    assert.equal(await tickets(), before + LATE);

    const said = await restore('db2', target);
    assert.equal(await tickets(), before, 'the tickets after the moment are gone');
    assert.match(said, /^claim_without_ticket /m);
    assert.match(said, /No differences: both databases tell the same story\.\n$/);
    await work();
    assert.equal(await tickets(), before + LATE);
    assert.match(await servers.asOperator('npx sluice reconcile'), /^No differences/);
  });

  test('goes back to a later moment when the first one was wrong', async () => {
    await servers.newCopy('db1');
    const first = await servers.withDb1(moment);
    await servers.withDb1((client) => claimMany(client, POOL, 1));
    const second = await servers.withDb1(moment);
    await servers.withDb1((client) => claimMany(client, POOL, 2));
    const live = () => servers.withDb1((client) => number(client, 'select count(*) from public.claims'));
    const all = await live();

    await servers.restore('db1', first);
    assert.equal(await live(), all - 3);
    // The control: the history of the first try does not reach the second moment.
    await assert.rejects(servers.restoreAgain('db1', second, 'latest'), /could not start server|It stopped/);
    await servers.restoreAgain('db1', second);
    assert.equal(await live(), all - 2);
    assert.match(await servers.asOperator(block('agree')), /No differences[^\n]*\n$/);
    await work();
  });

  test('makes a slot again that was put on sale after the moment, and keeps its ticket', async () => {
    await servers.newCopy('db1');
    const target = await servers.withDb1(moment);
    await servers.withDb1(async (client) => {
      await putOnSale(client, 'lost_pool', 3);
      await claimMany(client, 'lost_pool', 1);
    });
    await work();
    const sold = await tickets();

    await servers.restore('db1', target);
    const said = await servers.asOperator('npx sluice reconcile --fix || true');
    const [, SLOT = ''] =
      /^ticket_without_claim .*?([0-9a-f-]{36}).*the intake has no such slot/m.exec(said) ?? [];
    assert.ok(SLOT, said);
    assert.match(said, new RegExp(`${SLOT}.*for a person`));
    await servers.asOperator(block('slots'), { SLOT, POOL: 'lost_pool' });
    await servers.asOperator('npx sluice reconcile --fix || true');
    assert.match(await servers.asOperator('npx sluice reconcile'), /^No differences/);
    assert.equal(await tickets(), sold);
    assert.deepEqual(
      await servers.withDb1(
        async (client) =>
          (await client.query("select state from public.claims where pool_id = 'lost_pool'")).rows,
      ),
      [{ state: 'committed' }],
    );
  });

  test('is walked whole: each block of shell is run here or in paid.test.ts, or is marked as an example', () => {
    const marks = [...PAGE.matchAll(/^(.*)\n```(?:sh|sql)\n/gm)].map(([, mark]) => mark);
    const walked = [
      'prepare',
      'backup',
      'save',
      'restore',
      'writes',
      'again',
      'agree',
      'slots',
      'holds',
      'books',
      'money',
      'void',
      'resend',
    ];
    assert.deepEqual([...BLOCKS.keys()], walked);
    for (const mark of marks) assert.match(mark ?? '', /^<!-- (walk: \w+|example) -->$/);
  });
});

async function claimWithIds(client: pg.Client, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, at) => `request ${at}`);
  const { rows } = await client.query(
    'select outcome from public.claim_batch($1::text[], $2::text[], $3::text[], $4::boolean[])',
    [ids.map(() => POOL), ids, ids, ids.map(() => true)],
  );
  return rows.map(({ outcome }) => outcome);
}
