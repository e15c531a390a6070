import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { withClient } from '../../src/migrate/sql.ts';
import { runHere } from '../cli/support.ts';
import { contentOf, type Pair, startWorld, type World } from './support.ts';

const SETUP = '20260224100000';

describe('migrate, where the migrations of one database were edited since', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
  });
  after(() => world.stop());

  const record = (url: string, sql: string) => withClient(url, (client) => client.query(sql));
  const edit = (url: string) =>
    record(
      url,
      `update supabase_migrations.schema_migrations set statements = '{select 1}' where version = '${SETUP}'`,
    );
  const contents = async (pair: Pair) => [await contentOf(pair.DB1_URL), await contentOf(pair.DB2_URL)];

  for (const [side, other] of [
    ['DB1_URL', 'DB2_URL'],
    ['DB2_URL', 'DB1_URL'],
  ] as const) {
    test(`${side}: names it and the ways out, and leaves a new ${other} as empty as it was`, async () => {
      const pair = { ...(await world.newPair()), [other]: await world.newDatabase() };
      await edit(pair[side]);
      const before = await contents(pair);
      const { code, stderr } = await runHere(['migrate', '--seed'], pair);
      assert.equal(code, 1);
      assert.match(
        stderr,
        new RegExp(`^error: ${side.slice(0, 3)} \\(\\w+\\): ${SETUP}_\\w+\\.sql differs from`),
      );
      assert.match(stderr, /applied [0-9a-f]{8}, here [0-9a-f]{8}/);
      assert.match(stderr, /edits its migrations in place[\s\S]*Neither database was changed/);
      assert.match(stderr, /^ {2}npx sluice export sluice-export\.jsonl$/m);
      assert.match(stderr, /^ {2}npx sluice import sluice-export\.jsonl$/m);
      assert.deepEqual(await contents(pair), before);
    });
  }

  test('refuses where an applied migration is not here any more, and lets a later one of the owner be', async () => {
    const pair = await world.newPair();
    const add = (version: string) =>
      record(
        pair.DB1_URL,
        `insert into supabase_migrations.schema_migrations (version, name, statements) values ('${version}', 'own', '{select 1}')`,
      );
    await add('29991231000000');
    assert.equal((await runHere(['migrate'], pair)).code, 0);
    await add('20260224100099');
    const { code, stderr } = await runHere(['migrate'], pair);
    assert.equal(code, 1);
    assert.match(stderr, /20260224100099_own\.sql differs .*it is not here/);
  });

  for (const name of ['serve', 'work'])
    test(`${name} refuses to start beside it`, async () => {
      const pair = await world.newPair();
      await edit(pair.DB2_URL);
      const keys = {
        SLUICE_ADMIN_KEY: 'a key of the house',
        SLUICE_JWT_SECRET: 'x'.repeat(32),
        SLUICE_PORT: '0',
      };
      const { code, stderr } = await runHere([name, ...(name === 'work' ? ['--once'] : [])], {
        ...pair,
        ...keys,
      });
      assert.equal(code, 1);
      assert.match(stderr, /^error: DB2 \(ledger\): .* differs from/);
    });

  test('doctor says so', async () => {
    const pair = await world.newPair();
    await edit(pair.DB1_URL);
    const { stdout } = await runHere(['doctor'], pair);
    assert.match(stdout, /DB1 intake: migrations\s+1 edited since they were applied/);
  });

  test('import refuses it too', async () => {
    const pair = await world.newPair();
    await edit(pair.DB2_URL);
    await runHere(['export', world.file], world.old);
    const { code, stderr } = await runHere(['import', world.file], pair);
    assert.equal(code, 1);
    assert.match(stderr, /DB2 \(ledger\): .* differs from/);
  });
});
