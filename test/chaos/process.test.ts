import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Process, SERVER_READY } from '../../chaos/process.ts';
import { ADMIN_KEY, JWT_SECRET } from '../server/support.ts';

/** No database listens there; a server starts all the same. */
const NOWHERE = 'postgres://absent@127.0.0.1:1/nothing';

describe('a server as a process of its own', () => {
  let logDir: string;
  let server: Process;
  const faults: string[] = [];

  beforeEach(() => {
    logDir = mkdtempSync(join(tmpdir(), 'sluice-process-'));
    server = new Process({
      ...{ name: 'server-1', args: ['serve'], ready: SERVER_READY, logDir },
      env: {
        ...{ DB1_URL: NOWHERE, DB2_URL: NOWHERE, SLUICE_ADMIN_KEY: ADMIN_KEY, SLUICE_JWT_SECRET: JWT_SECRET },
        ...{ SLUICE_PORT: '0', SLUICE_HOST: '127.0.0.1', SLUICE_LOG: 'error' },
      },
      onFault: (what) => faults.push(what),
    });
  });
  afterEach(async () => {
    await server.kill();
    rmSync(logDir, { recursive: true });
  });

  it('says where it listens, also when another process has its old port by then', async () => {
    await server.start();
    const { port } = server;
    assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200);
    await server.kill();

    const squatter = createServer().listen(port, '127.0.0.1');
    await once(squatter, 'listening');
    try {
      await server.start();
      assert.notEqual(server.port, port);
      assert.equal((await fetch(`http://127.0.0.1:${server.port}/healthz`)).status, 200);
    } finally {
      squatter.close();
    }
    assert.deepEqual(faults, []);
  });
});
