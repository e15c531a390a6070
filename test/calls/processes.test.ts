import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, before, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { addSites, callBody, countCalls, post, signedRequest } from './support.ts';

const PROCESSES = 4;
const TIMES_EACH = 200;
const SERVER = fileURLToPath(new URL('./server.ts', import.meta.url));

interface Child {
  process: ChildProcess;
  url: string;
}

async function startProcess(db2Url: string): Promise<Child> {
  const child = spawn(process.execPath, ['--import', 'tsx', SERVER], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, DB2_URL: db2Url, SLUICE_LOG: 'silent' },
  });
  const lines = createInterface({ input: child.stdout });
  const [url] = (await once(lines, 'line')) as [string];
  return { process: child, url };
}

describe('four server processes without Redis', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  let children: Child[] = [];

  before(async () => {
    databases = await startDatabases({ db1: false });
    client = await openClient(databases.db2.url);
    await addSites(client);
    children = await Promise.all(Array.from({ length: PROCESSES }, () => startProcess(databases.db2.url)));
  });
  beforeEach(() => client.query('truncate public.calls'));
  after(async () => {
    await Promise.all(
      children.map(async ({ process: child }) => {
        const ended = once(child, 'exit');
        child.stdin?.end();
        await ended;
      }),
    );
    await client?.end();
    await databases?.stop();
  });

  /** How often each answer was given. */
  async function storm(line: number): Promise<Record<string, number>> {
    const request = signedRequest(callBody({ payload: { line } }));
    const sends = children.flatMap(({ url }) => Array.from({ length: TIMES_EACH }, () => post(url, request)));
    const counts: Record<string, number> = {};
    for (const { status, json } of await Promise.all(sends)) {
      const key = [status, json.status, json.reason].filter(Boolean).join(' ');
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  }

  it('store the same signed request, sent 200 times to each at once, in one row', async () => {
    const total = PROCESSES * TIMES_EACH;
    assert.deepEqual(await storm(1), { '200 recorded': 1, '200 noop idempotent_conflict': total - 1 });
    assert.equal(await countCalls(client), 1);
  });

  it('store it several times without the unique index: that is what holds', async () => {
    await client.query('drop index public.calls_site_signature_hash_uq');
    const answers = await storm(2);
    assert.ok((answers['200 recorded'] ?? 0) > 1, JSON.stringify(answers));
    assert.equal(await countCalls(client), answers['200 recorded']);
  });
});
