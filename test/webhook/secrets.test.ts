// Where a server finds secrets, and that a new value counts without a restart.

import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { Secrets } from '#core/webhook/secrets.ts';
import { StackError } from '../../src/failure.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { createSecretSource } from '../../src/webhook/secret_source.ts';
import { memoryLog } from '../core/support.ts';
import { openClient, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { addEndpoint, paymentEvent, send } from './world.ts';

const NAME = 'STRIPE_WEBHOOK_SECRET';
const OLD = 'whsec_of_the_last_year';
const NEW = 'whsec_of_the_new_year';
const IN_VAULT = 'whsec_that_vault_keeps';
const DEADLINE_MS = 10_000;

describe('secrets', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-secrets-'));
  const file = join(dir, 'secrets');
  /** As an operator should: written beside, then renamed. */
  const write = (text: string) => {
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  };
  after(() => rmSync(dir, { recursive: true, force: true }));

  it('of the file come before those of the environment, and a changed file is read again', () => {
    write(`# ours\n${NAME}=${OLD}\nQUOTED="a = b"\r\nEMPTY=\n`);
    const secretOf = createSecretSource({
      SLUICE_SECRETS_FILE: file,
      [NAME]: 'x',
      EMPTY: 'set',
      OTHER: 'other',
    });
    assert.deepEqual([NAME, 'QUOTED', 'EMPTY', 'OTHER', 'NONE'].map(secretOf), [
      OLD,
      'a = b',
      'set',
      'other',
      undefined,
    ]);
    write(`${NAME}=${NEW}\n`);
    assert.equal(secretOf(NAME), NEW);
    rmSync(file);
    assert.equal(secretOf(NAME), NEW, 'a file that is away for a moment keeps its last content');
  });

  it('are not looked for in a file that cannot be read at the start', () => {
    assert.throws(() => createSecretSource({ SLUICE_SECRETS_FILE: join(dir, 'none') }), StackError);
    assert.equal(createSecretSource({ [NAME]: OLD })(NAME), OLD, 'without a file the environment has them');
  });

  it('that cannot be used are told to the log once a minute each', async () => {
    let nowMs = 0;
    const secrets = new Secrets({
      findSecret: async () => ({ is_allowed: true, value: null }),
      secretOf: (name) => (name === NAME ? NEW : undefined),
      now: () => nowMs,
    });
    const log = memoryLog();
    const told = () => log.lines.map(({ fields }) => fields?.secret);
    const ask = () => secrets.good([NAME, 'GONE', 'AWAY'], 16, log, {});
    for (const at of [0, 1, 59_999]) {
      nowMs = at;
      assert.deepEqual(await ask(), { values: [NEW], areAll: true });
    }
    assert.deepEqual(told(), ['GONE', 'AWAY']);
    nowMs = 60_000;
    await ask();
    assert.deepEqual(told(), ['GONE', 'AWAY', 'GONE', 'AWAY']);
  });

  describe('of a running server', () => {
    let databases: TestDatabases;
    let server: RunningServer;
    let db2: pg.Client;
    let serial = 0;

    before(async () => {
      write(`${NAME}=${OLD}\n`);
      databases = await startDatabases();
      db2 = await openClient(databases.db2.url);
      await addEndpoint(db2, 'shop', 'stripe', 'queued');
      server = await startTestServer(databases, {
        secretOf: createSecretSource({ SLUICE_SECRETS_FILE: file }),
      });
    });
    after(async () => {
      await server?.stop();
      await db2?.end();
      await databases?.stop();
    });

    const statusWith = async (secret: string) => {
      const body = paymentEvent(`evt_${++serial}`);
      return (await send({ url: `${server.url}/webhooks/shop`, provider: 'stripe', body, secret })).status;
    };
    /** Until it is taken: a server believes its last look for a second. */
    const becomesGood = async (secret: string) => {
      const until = Date.now() + DEADLINE_MS;
      while ((await statusWith(secret)) !== 200) assert.ok(Date.now() < until, `${secret} is not taken`);
    };

    it('change with the file, without a restart', async () => {
      assert.deepEqual([await statusWith(OLD), await statusWith(NEW)], [200, 401]);
      write(`${NAME}=${NEW}\n`);
      assert.deepEqual([await statusWith(OLD), await statusWith(NEW)], [401, 200]);
    });

    it('come from Vault where it has one, and follow it without a restart', async () => {
      await db2.query(`create schema vault;
        create table vault.decrypted_secrets (name text, decrypted_secret text);
        insert into vault.decrypted_secrets values ('${NAME}', '${IN_VAULT}')`);
      await becomesGood(IN_VAULT);
      assert.equal(await statusWith(NEW), 401, "Vault's comes first");
      await db2.query('delete from vault.decrypted_secrets');
      await becomesGood(NEW);
    });
  });
});
