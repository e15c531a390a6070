// The table of bad input on Node: every row at every door of a real `sluice serve`, while slow senders and a thousand silent
// sockets hold on to it.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ask, parseAnswer } from '../server/support.ts';
import { changed, type Watch, watchDatabases } from './fingerprint.ts';
import { MAX_REQUESTS, runFlood } from './flood.ts';
import { type NodePlace, startNodePlace } from './node_place.ts';
import { runOutage } from './outage.ts';
import { Tally } from './outcome.ts';
import { runGood, runRow } from './run_row.ts';
import { startServeProcess } from './serve_process.ts';
import { openSlowly, type Slow, statusOf } from './slow.ts';
import { TABLE } from './table.ts';

const SILENT_SOCKETS = 1_000;

describe('bad input at the doors of the Node server', () => {
  let place: NodePlace;
  let watch: Watch;
  let slow: Slow[];
  let silent: Slow[];
  const tally = new Tally('node');

  before(async () => {
    place = await startNodePlace();
    watch = await watchDatabases(place.databaseUrls());
    const { port } = place.serve;
    const head = `POST /v1/pools/${place.things.pool}/claims HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
    slow = [
      openSlowly(port, head, 'x'),
      openSlowly(port, `${head}Content-Length: 4000\r\n\r\n{"user_id":"`, 'x'),
      openSlowly(port, `${head}Transfer-Encoding: chunked\r\n\r\n`, '1\r\nx\r\n'),
    ];
    silent = Array.from({ length: SILENT_SOCKETS }, () => openSlowly(port, ''));
  });
  after(async () => {
    for (const { socket } of [...(slow ?? []), ...(silent ?? [])]) socket.destroy();
    if (place) await tally.keep(place.databaseUrls()[0]);
    await watch?.stop();
    assert.equal(await place?.stop(), 0, 'it ends when it is told to');
  });

  for (const row of TABLE) {
    it(`${row.fact}: ${row.name}`, async () => {
      const { cells, wrong } = await runRow(row, place, watch);
      tally.add(cells, wrong.length);
      assert.deepEqual(wrong, []);
    });
  }

  it('asked every door about something', () => assert.ok(tally.cells > 1_500, String(tally.cells)));

  it('answers 408 to slow headers and slow bodies, and closes the connection', async () => {
    for (const { ended } of slow) {
      const { status, json } = parseAnswer(await ended);
      assert.deepEqual([status, json.error.code], [408, 'timeout']);
    }
  });

  it('closes a thousand sockets that never said anything', async () => {
    const answers = await Promise.all(silent.map(({ ended }) => ended));
    assert.deepEqual(
      answers.filter((raw) => statusOf(raw) !== 408),
      [],
    );
    assert.ok(await place.isAlive());
  });

  it('too many claims: 429 with Retry-After at their doors only, nothing changed, and those under way are answered', async () => {
    const [db1Url, db2Url] = place.databaseUrls();
    const settings = { SLUICE_MAX_REQUESTS: String(MAX_REQUESTS) };
    const serve = await startServeProcess({ db1Url, db2Url }, settings);
    try {
      const isAlive = async () => (await ask(`${serve.url}/healthz`)).status === 200;
      const earlier = await watch.take();
      const { cells, wrong, answers } = await runFlood({ ...place, url: serve.url, isAlive });
      tally.add(cells, wrong.length);
      assert.deepEqual(wrong, []);
      assert.deepEqual(
        answers.map(({ status }) => status),
        Array.from({ length: MAX_REQUESTS }, () => 200),
      );
      assert.deepEqual(changed(earlier, await watch.take()), []);
      const later = await ask(`${serve.url}/v1/pools/${place.things.pool}`);
      assert.equal(later.status, 200, 'there is room again');
    } finally {
      await serve.stop();
    }
  });

  it('takes the requests that all rows are made from', async () => {
    assert.deepEqual((await runGood(place)).wrong, []);
  });

  it('database down: 503 with Retry-After at every door, nothing changed, and everything again afterwards', async () => {
    const earlier = await watch.take();
    await watch.stop();
    await place.stopDatabases();
    const { cells, wrong } = await runOutage(place);
    tally.add(cells, wrong.length);
    assert.deepEqual(wrong, []);
    assert.equal((await ask(`${place.url}/healthz`)).status, 200);
    assert.equal((await ask(`${place.url}/readyz`)).status, 503);
    await place.startDatabases();
    watch = await watchDatabases(place.databaseUrls());
    assert.deepEqual(changed(earlier, await watch.take()), []);
  });

  it('wrote no secret and no unhandled failure to its log', () => {
    const log = place.logs();
    assert.match(log, /Sluice listens/, 'there is a log to look at');
    for (const secret of place.hidden) assert.ok(!log.includes(secret), 'a secret');
    assert.doesNotMatch(log, /unhandled|uncaught|"level":"error"/i);
  });
});
