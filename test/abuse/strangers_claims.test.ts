// What a stranger can do to another buyer, tried against the server with its default settings. Each attack is refused, and
// succeeds once its guard is switched off: then the guard, and nothing else, stood in its way.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { RunningServer } from '../../src/server/server.ts';
import { bearer, putOnSale, startTestServer, token } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { startTestPostgrest } from '../support/postgrest.ts';
import { openSession } from '../support/sessions.ts';
import { ATTACKS, type Attack, type Place, VICTIM } from './claim_attacks.ts';

describe('a stranger', () => {
  let databases: TestDatabases;
  let server: RunningServer;
  let place: Omit<Place, 'pool'>;
  let pools = 0;

  before(async () => {
    databases = await startDatabases();
    // Where buyers come back to from Stripe: without it the server offers no checkout to attack.
    const publicUrl = new URL('https://tickets.example.com');
    server = await startTestServer(databases, { proxy: { trustedProxies: 0, publicUrl } });
    place = {
      url: server.url,
      db1: await openSession(databases.db1.url),
      db2: await openSession(databases.db2.url),
      rest: {
        db1: await startTestPostgrest(databases.db1),
        db2: await startTestPostgrest(databases.db2),
      },
      victim: bearer(await token({ role: 'authenticated', sub: VICTIM })),
      guest: bearer(await token({ role: 'authenticated', sub: randomUUID(), is_anonymous: true })),
    };
  });
  after(async () => {
    await server?.stop();
    await Promise.all([place?.rest.db1.stop(), place?.rest.db2.stop()]);
    await Promise.all([place?.db1.client.end(), place?.db2.client.end()]);
    await databases?.stop();
  });

  const attempt = async ({ attack }: Attack, rules = {}): Promise<string> => {
    const pool = `pool-${pools++}`;
    await putOnSale(place.db1.client, pool, 10, rules);
    return attack({ ...place, pool });
  };
  const withoutGuard = async (row: Attack): Promise<string> => {
    const { guard, rules } = row;
    if ('rules' in guard) return attempt(row, guard.rules);
    const { client } = place[guard.side];
    await client.query(guard.off);
    try {
      return await attempt(row, rules);
    } finally {
      await client.query(guard.on);
    }
  };

  for (const row of ATTACKS) {
    const { finding, name, rules, refused, succeeds } = row;
    it(`${finding}: ${name}: ${refused}; without the guard: ${succeeds}`, async () => {
      assert.equal(await attempt(row, rules), refused);
      assert.equal(await withoutGuard(row), succeeds);
      assert.equal(await attempt(row, rules), refused);
    });
  }
});
