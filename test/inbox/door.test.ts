import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type { RunningServer } from '../../src/server/server.ts';
import { assertRefusal } from '../server/support.ts';
import { paymentEvent } from '../webhook/world.ts';
import { InboxWorld, until } from './world.ts';

const EMPTY_TWIML = '<?xml version="1.0" encoding="UTF-8"?><Response/>';

describe('a delivery while DB2 is away', () => {
  let world: InboxWorld;
  let server: RunningServer;
  before(async () => {
    world = await InboxWorld.start();
    server = await world.startServer();
    await world.copied('endpoint', 'refusing');
  });
  after(() => world?.stop());
  afterEach(() => world.recover(server));

  it('is accepted where its endpoint accepts, and is one event with one effect when DB2 is back', async () => {
    assert.equal((await world.post(server, 'stripe', 'evt_before')).json.status, 'recorded');
    world.cut();
    const sentAt = Date.now();
    const { status, json } = await world.post(server, 'stripe', 'evt_away');
    assert.deepEqual(
      [status, json],
      [200, { status: 'accepted', events: [{ event_id: 'evt_away', status: 'accepted' }] }],
    );
    const doneAt = Date.now();
    assert.equal(await world.waiting(), 1);
    assert.deepEqual(await world.carry(), { totals: { outage: 1 }, isPaused: true });
    world.heal();
    await until(async () => (await world.carry()).totals.recorded === 1);
    const [event, ...others] = await world.events('evt_away');
    assert.equal(others.length, 0);
    const receivedAt = Number(event?.received_at);
    assert.ok(receivedAt >= sentAt && receivedAt <= doneAt, 'received_at is the arrival');
    await world.process();
    const credits = await world.db2.query(
      `select event_id from public.credit_ledger where event_id = 'evt_away'`,
    );
    assert.equal(credits.rowCount, 1);
    assert.equal(await world.waiting(), 0);
  });

  it('is refused where its endpoint refuses, and so are forgeries and unknown endpoints', async () => {
    world.cut();
    for (let time = 0; time < 3; time++)
      assertRefusal(await world.post(server, 'refusing', 'evt_refused'), 503, 'database_unavailable');
    const forged = await world.post(server, 'stripe', 'evt_forged', { secret: 'whsec_of_a_forger_xxxx' });
    assertRefusal(forged, 401, 'bad_signature');
    assertRefusal(await world.ring(server, 'CAforged', { secret: 'f'.repeat(32) }), 401, 'bad_signature');
    assertRefusal(await world.post(server, 'unknown', 'evt_unknown'), 404, 'unknown_endpoint');
    assert.equal(await world.waiting(), 0);
    assert.equal((await world.post(server, 'stripe', 'evt_control')).json.status, 'accepted');
  });

  it('of Twilio gets the answer that Twilio reads: empty TwiML for a call, JSON for a status', async () => {
    world.cut();
    const voice = await world.ring(server, 'CAvoice', {
      body: 'CallSid=CAvoice&CallStatus=ringing&Direction=inbound',
    });
    assert.deepEqual(
      [voice.status, voice.headers['content-type'], voice.text],
      [200, 'text/xml; charset=utf-8', EMPTY_TWIML],
    );
    assert.equal((await world.ring(server, 'CAstatus')).json.status, 'accepted');
    world.heal();
    await until(async () => {
      await world.carry();
      return (await world.waiting()) === 0;
    });
    const { rows } = await world.db2.query(
      `select event_type, payload ->> 'CallDuration' as sec from public.webhook_events where provider = 'twilio' order by 1`,
    );
    assert.deepEqual(rows, [
      { event_type: 'call.completed', sec: '7' },
      { event_type: 'voice.request', sec: null },
    ]);
  });

  it('is accepted when DB2 went silent, and the next one does not ask DB2 at all', async () => {
    world.silence();
    assert.equal((await world.ring(server, 'CAsilent1')).json.status, 'accepted');
    const { swallowed } = world.wires.db2.state();
    assert.ok(swallowed > 0, 'the first has asked');
    // One of the next may be the probe of a breaker whose pause is over; two in a row are not.
    const asked: number[] = [];
    for (const sid of ['CAsilent2', 'CAsilent3', 'CAsilent4']) {
      const before = world.wires.db2.state().swallowed;
      assert.equal((await world.ring(server, sid)).json.status, 'accepted');
      asked.push(world.wires.db2.state().swallowed - before);
    }
    assert.ok(asked.includes(0), `${asked}`);
    assertRefusal(await world.post(server, 'refusing', 'evt_silent'), 503, 'database_unavailable');
  });

  it('that DB2 has recorded although its answer was lost is one event', async () => {
    const cut = world.replies.cutReplyTo('evt_unknown');
    const answer = await world.post(server, 'stripe', 'evt_unknown');
    await cut;
    assert.equal(answer.json.status, 'accepted');
    assert.equal((await world.events('evt_unknown')).length, 1, 'DB2 has it');
    assert.equal(await world.waiting(), 1, 'and the inbox too');
    await until(async () => (await world.carry()).totals.recorded === 1);
    await world.process();
    assert.deepEqual(
      (await world.events('evt_unknown')).map(({ status }) => status),
      ['success'],
    );
    const credits = await world.db2.query(`select from public.credit_ledger where event_id = 'evt_unknown'`);
    assert.equal(credits.rowCount, 1);
  });

  it('that its provider repeats is one event, by whichever way each of them came', async () => {
    world.cut();
    for (let time = 0; time < 2; time++)
      assert.equal((await world.post(server, 'stripe', 'evt_twice')).json.status, 'accepted');
    assert.equal(await world.waiting(), 2);
    world.heal();
    await until(async () => (await world.post(server, 'stripe', 'evt_twice')).json.status === 'recorded');
    await until(async () => {
      await world.carry();
      return (await world.waiting()) === 0;
    });
    assert.equal((await world.events('evt_twice')).length, 1);
    const alarms = await world.db2.query(`select from public.webhook_alarms`);
    assert.equal(alarms.rowCount, 0);
  });

  it('that is not JSON is kept and refused, as ever', async () => {
    world.cut();
    assertRefusal(await world.post(server, 'stripe', '', { body: '{"id":"evt_bad"' }), 400, 'invalid_json');
    assert.equal(await world.waiting(), 1);
    world.heal();
    await until(async () => (await world.carry()).totals.recorded === 1);
    const { rows } = await world.db2.query(
      `select status::text, convert_from(raw_body, 'UTF8') as body from public.webhook_events where event_id like 'invalid:%'`,
    );
    assert.deepEqual(rows, [{ status: 'dead_letter', body: '{"id":"evt_bad"' }]);
  });

  it('keeps its bytes and digits, however large it is', async () => {
    world.cut();
    const pad = 'ü'.repeat(400_000);
    const body = paymentEvent('evt_large', { metadata: { user_id: 'ann', pad } }).replace(
      '"pending_webhooks":1',
      '"pending_webhooks":1,"long":12345678901234567890',
    );
    assert.equal((await world.post(server, 'stripe', '', { body })).json.status, 'accepted');
    world.heal();
    await until(async () => (await world.carry()).totals.recorded === 1);
    const { rows } = await world.db2.query(
      `select convert_from(raw_body, 'UTF8') = $1 as same, payload ->> 'long' as long from public.webhook_events where event_id = 'evt_large'`,
      [body],
    );
    assert.deepEqual(rows, [{ same: true, long: '12345678901234567890' }]);
  });

  it('is answered 503 when DB1 is away too', async () => {
    world.cut();
    assert.equal((await world.post(server, 'stripe', 'evt_one')).json.status, 'accepted');
    world.wires.db1.begin({ kind: 'cut' });
    assertRefusal(await world.post(server, 'stripe', 'evt_both'), 503, 'database_unavailable');
    world.heal();
    assert.equal((await world.events('evt_both')).length, 0);
  });

  it('is counted', async () => {
    const page = await world.metrics.page();
    assert.match(page, /sluice_inbox_accepted_total\{kind="event"\} [1-9]/);
    assert.match(page, /sluice_inbox_accepted_total\{kind="call"\} 0/);
  });
});

describe('a door that starts while DB2 is away', () => {
  let world: InboxWorld;
  before(async () => {
    world = await InboxWorld.start();
  });
  after(() => world?.stop());

  it('knows no endpoint where none was ever copied, and says 503, not 404', async () => {
    world.cut();
    const server = await world.startServer();
    assertRefusal(await world.post(server, 'stripe', 'evt_early'), 503, 'database_unavailable');
    assertRefusal(await world.post(server, 'unknown', 'evt_early'), 503, 'database_unavailable');
  });

  it('verifies by the copy that another server has made', async () => {
    world.heal();
    await world.startServer();
    await world.copied('endpoint', 'twilio');
    world.cut();
    const server = await world.startServer();
    assert.equal((await world.ring(server, 'CAlate')).json.status, 'accepted');
    assertRefusal(await world.ring(server, 'CAlate', { secret: 'f'.repeat(32) }), 401, 'bad_signature');
    assertRefusal(await world.post(server, 'unknown', 'evt_late'), 404, 'unknown_endpoint');
    assertRefusal(await world.post(server, 'refusing', 'evt_late'), 503, 'database_unavailable');
    assert.equal(await world.waiting(), 1);
  });
});
