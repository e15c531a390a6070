// One failover of a real cell under load. `npm run chaos -- --cells` has the other faults.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Cell } from '../../chaos/cells/cell.ts';
import { CLAIM_POOL, Load } from '../../chaos/cells/load.ts';
import { prepareCells } from '../../chaos/cells/servers.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { ask, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases } from '../support/databases.ts';

const SLOTS = 20_000;
const BUYERS = 4;

it('an acknowledged claim survives the loss of the primary, and clients see 503 meanwhile', async (context) => {
  const reason = await prepareCells();
  if (reason !== undefined) return context.skip(reason);
  const [cell, ledger] = await Promise.all([Cell.start({ side: 'db1' }), startDatabases({ db1: false })]);
  try {
    await withClient(cell.url, (client) => putOnSale(client, CLAIM_POOL, SLOTS));
    const server = await startTestServer({ db1: cell, db2: ledger.db2 });
    const readiness = watch(server.url);
    const load = new Load({ port: () => server.port, clients: { claim: BUYERS }, run: 'ci' });
    await acknowledged(load, 50);
    const primary = await cell.ready();
    primary.killPatroni();
    primary.killPostgres();
    const before = load.tally.told.length;
    await readiness.says(503);
    // What was under way when the primary died may still be counted: more than all buyers together prove the new one.
    await acknowledged(load, before + 50);
    await readiness.says(200);
    const told = await load.stop();
    await readiness.stop();
    await server.stop();
    await cell.heal();
    const kept = await withClient(cell.url, async (client) => {
      const { rows } = await client.query('select request_id, claim_id from public.claims');
      return new Map(rows.map((row) => [row.request_id, row.claim_id]));
    });
    assert.notEqual(await cell.primary(), primary);
    assert.deepEqual(
      told.filter(({ key, claimId }) => kept.get(key) !== claimId),
      [],
      'acknowledged claims that the cell does not have',
    );
    assert.deepEqual(load.tally.wrong, []);
  } finally {
    await Promise.all([cell.remove(), ledger.stop()]);
  }
});

async function acknowledged(load: Load, wanted: number): Promise<void> {
  while (load.tally.told.length < wanted) await pause(20);
}

/** Asks /readyz again and again; it has only two answers. */
function watch(url: string) {
  let status = 0;
  let isStopped = false;
  const running = (async () => {
    while (!isStopped) {
      ({ status } = await ask(`${url}/readyz`));
      assert.ok([200, 503].includes(status), `/readyz answered ${status}`);
      await pause(50);
    }
  })();
  return {
    async says(wanted: number) {
      while (status !== wanted) await Promise.race([pause(20), running]);
    },
    async stop() {
      isStopped = true;
      await running;
    },
  };
}
