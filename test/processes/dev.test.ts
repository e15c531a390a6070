import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { ask, bearer, claim, openClient } from '../server/support.ts';
import { PROJECT, processesUnder, readEnv, startDev, stopDev } from '../support/dev.ts';
import { until } from './support.ts';

it('npm start with a worker of its own carries claims, shows all numbers at the server, and leaves nothing', async (t) => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-apart-')));
  // Root's server user must be able to get here.
  spawnSync('chmod', ['755', home]);
  const dir = join(home, '.sluice');
  const dev = startDev({
    dir,
    args: ['--processes', '3'],
    env: { SLUICE_MAX_REQUESTS: 'not for npm start' },
  });
  t.after(async () => {
    await stopDev(dev, 'SIGKILL');
    spawnSync(process.execPath, [join(PROJECT, 'bin', 'sluice.js'), 'reset'], {
      env: { ...process.env, SLUICE_DIR: dir },
    });
    rmSync(home, { recursive: true, force: true });
  });
  await dev.ready;
  assert.match(dev.output(), /Processes +3 on \d+ cores?: 2 servers, 1 worker\n/);
  const { SLUICE_URL: url = '', SLUICE_ADMIN_KEY: key = '', DB2_URL = '' } = readEnv(dir);
  const db2 = await openClient(DB2_URL);
  const { status, json } = await claim(url, 'demo_concert_2026', { user_id: 'u' });
  assert.equal(status, 201);
  await until('the ticket is there', async () => {
    const tickets = await db2.query('select from public.confirmed_tickets where claim_id = $1', [
      json.claim_id,
    ]);
    return tickets.rowCount === 1;
  });
  await db2.end();
  let text = '';
  await until('the server shows what the worker did', async () => {
    ({ text } = await ask(`${url}/metrics`, { headers: bearer(key) }));
    return /^sluice_bridge_deliveries_total\{outcome="committed"\} 1$/m.test(text);
  });
  assert.match(text, /^sluice_claims_total\{outcome="claimed"\} 1$/m);
  assert.match(text, /^sluice_processes 3$/m);
  assert.equal(await stopDev(dev, 'SIGINT'), 0, dev.output());
  assert.deepEqual(processesUnder(dir), []);
});
