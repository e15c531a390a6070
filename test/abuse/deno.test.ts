// The table of bad input on Deno: every row at every door of the Edge Functions. What the gateway in front of them answers
// itself is marked in the row; slow senders and floods are the platform's business there.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { findDeno, startFunction } from '../../src/stack/functions.ts';
import { ask, bearer } from '../server/support.ts';
import { type DenoPlace, startDenoPlace } from './deno_place.ts';
import { changed, type Watch, watchDatabases } from './fingerprint.ts';
import { runOutage } from './outage.ts';
import { Tally } from './outcome.ts';
import { runGood, runRow } from './run_row.ts';
import { TABLE } from './table.ts';

describe('bad input at the Edge Functions', () => {
  let place: DenoPlace;
  let watch: Watch;
  const tally = new Tally('deno');

  before(async () => {
    place = await startDenoPlace();
    watch = await watchDatabases(place.databaseUrls());
  });
  after(async () => {
    if (place) await tally.keep(place.databaseUrls()[0]);
    await watch?.stop();
    await place?.stop();
  });

  for (const row of TABLE) {
    it(`${row.fact}: ${row.name}`, async () => {
      const { cells, wrong } = await runRow(row, place, watch);
      tally.add(cells, wrong.length);
      assert.deepEqual(wrong, []);
    });
  }

  it('asked every function about something', () => assert.ok(tally.cells > 800, String(tally.cells)));

  it('takes the requests that all rows are made from', async () => {
    assert.deepEqual((await runGood(place)).wrong, []);
  });

  it('database down: 503 with Retry-After from every function, and nothing changed', async () => {
    const earlier = await watch.take();
    const upstreams = [place.world.stack.db1, place.world.stack.db2].map(({ gateway }) => gateway.upstreams);
    const ports = upstreams.map(({ restPort }) => restPort);
    for (const each of upstreams) delete each.restPort;
    const { cells, wrong } = await runOutage(place);
    for (const [index, each] of upstreams.entries()) {
      const port = ports[index];
      if (port !== undefined) each.restPort = port;
    }
    tally.add(cells, wrong.length);
    assert.deepEqual(wrong, []);
    assert.deepEqual(changed(earlier, await watch.take()), []);
  });

  for (const secret of [undefined, '', 'undefined']) {
    it(`a function whose key is ${JSON.stringify(secret) ?? 'not set'} refuses every token`, async () => {
      const closed = await startFunction({
        name: 'admin-dlq',
        binary: findDeno() ?? '',
        projectRoot: PROJECT_ROOT,
        cacheDir: join(place.world.dir, 'run', 'deno'),
        logFile: join(place.world.dir, 'run', 'closed.log'),
        env: secret === undefined ? {} : { DB1_SUPABASE_SERVICE_ROLE_KEY: secret },
      });
      try {
        for (const token of ['', 'undefined', place.operatorKey]) {
          const answer = await ask(`http://127.0.0.1:${closed.port}/admin-dlq`, { headers: bearer(token) });
          assert.equal(answer.status, 401);
        }
      } finally {
        await closed.stop();
      }
    });
  }

  it('their logs hold JSON lines and no secret', () => {
    const log = place.logs();
    for (const secret of place.hidden) assert.ok(!log.includes(secret), 'a secret');
    const lines = log
      .trimEnd()
      .split('\n')
      .filter((line) => !line.startsWith('Listening on'));
    assert.ok(lines.length > 0, 'there is a log to look at');
    for (const line of lines) assert.ok(JSON.parse(line).message);
  });
});
