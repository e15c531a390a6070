import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { runHere } from '../cli/support.ts';
import { startFleet } from './support.ts';

/** Patroni as a cell's REST API shows it. */
async function startPatroni(t: TestContext, isSynchronous: boolean): Promise<string> {
  const config = { synchronous_mode: isSynchronous, synchronous_mode_strict: isSynchronous };
  const server = createServer((request, response) =>
    response.end(JSON.stringify(request.url === '/config' ? config : { patroni: { version: '4.0.1' } })),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('the doctor judges each cell by its own Patroni', async (t) => {
  const fleet = await startFleet(t);
  const [good, bad] = [await startPatroni(t, true), await startPatroni(t, false)];
  const doctor = (DB1_PATRONI_URL: string) =>
    runHere(['doctor', '--json'], {
      SLUICE_CELLS: fleet.cells.map(({ name, url }) => `${name}=${url}`).join(','),
      DB2_URL: fleet.db2.url,
      DB1_PATRONI_URL,
    });
  const judged = async (given: string) => {
    const checks: { check: string; status: string }[] = JSON.parse((await doctor(given)).stdout).checks;
    return checks
      .filter(({ check }) => /: Patroni/.test(check))
      .map(({ check, status }) => [check.slice(-8), status]);
  };
  // Both are synchronous or both are not where one cell's is read for the other.
  assert.deepEqual(await judged(`a=http://127.0.0.1:1,${good},b=${bad}`), [
    ['(cell a)', 'warn'],
    ['(cell b)', 'fail'],
  ]);
  assert.deepEqual(await judged(`b=${bad}`), [['(cell b)', 'fail']]);
  assert.match((await doctor(bad)).stderr, /DB1_PATRONI_URL cannot be read/);
});
