import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { jwtVerify } from 'jose';
import { apiKeys, loadSecrets } from '../../src/stack/keys.ts';

describe('secrets and keys', () => {
  let dir: string;
  let file: string;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-keys-'));
    file = join(dir, 'secrets.json');
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  test('are made once, at random, and kept where only the owner can read', () => {
    const first = loadSecrets(file);
    assert.deepEqual(loadSecrets(file), first);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.notEqual(loadSecrets(join(dir, 'other.json')).adminKey, first.adminKey);
    assert.equal(new Set(Object.values(first)).size, Object.keys(first).length);
  });

  test('that are missing after an upgrade are added, and the others stay', () => {
    const { opsSiteSecret, ...older } = loadSecrets(file);
    writeFileSync(file, JSON.stringify(older));
    const completed = loadSecrets(file);
    assert.equal(completed.postgresPassword, older.postgresPassword);
    assert.notEqual(completed.opsSiteSecret, opsSiteSecret);
    assert.equal(JSON.parse(readFileSync(file, 'utf8')).opsSiteSecret, completed.opsSiteSecret);
  });

  test('that cannot be read are reported, never replaced', () => {
    writeFileSync(file, '{"postgresPassword": "abc');
    assert.throws(() => loadSecrets(file), /not readable as JSON/);
    assert.equal(readFileSync(file, 'utf8'), '{"postgresPassword": "abc');
  });

  test('the keys are tokens of the project for the roles anon and service_role, the same at every start', async () => {
    const { db1JwtSecret, createdAt } = loadSecrets(file);
    const keys = await apiKeys('sluice-db1', db1JwtSecret, createdAt);
    assert.deepEqual(await apiKeys('sluice-db1', db1JwtSecret, createdAt), keys);
    const secret = new TextEncoder().encode(db1JwtSecret);
    const { payload } = await jwtVerify(keys.anon, secret, { issuer: 'supabase', algorithms: ['HS256'] });
    assert.deepEqual([payload.role, payload.ref], ['anon', 'sluice-db1']);
    assert.equal((await jwtVerify(keys.serviceRole, secret)).payload.role, 'service_role');
  });
});
