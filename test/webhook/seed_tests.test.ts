// The four tests that every idempotent webhook handler must pass, in both modes.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertRefusal } from '../server/support.ts';
import { paymentEvent, WebhookWorld } from './world.ts';

describe('a webhook handler', () => {
  let world: WebhookWorld;
  before(async () => {
    world = await WebhookWorld.start();
    await world.addEndpoint('inline', 'stripe', 'inline');
    await world.addEndpoint('queued', 'stripe', 'queued');
  });
  after(() => world?.stop());

  for (const mode of ['inline', 'queued']) {
    it(`${mode}: the same event delivered 5 times has only one side effect`, async () => {
      const user = `five ${mode}`;
      const body = paymentEvent(`evt_five_${mode}`, { metadata: { user_id: user } });
      const said: string[] = [];
      for (let delivery = 0; delivery < 5; delivery++) {
        const answer = await world.send(mode, 'stripe', body);
        assert.equal(answer.status, 200, answer.text);
        said.push(answer.json.status);
      }
      await world.process();
      assert.deepEqual(said, [mode === 'inline' ? 'processed' : 'recorded', ...Array(4).fill('duplicate')]);
      assert.deepEqual(await world.credited(user), { rows: 1, sum: 100 });
      assert.equal((await world.event(`evt_five_${mode}`))?.status, 'success');
    });

    it(`${mode}: an invalid signature is rejected and nothing is stored`, async () => {
      const body = paymentEvent(`evt_forged_${mode}`);
      const forged = await world.send(mode, 'stripe', body, { secret: 'whsec_other' });
      assertRefusal(forged, 401, 'bad_signature');
      assert.match(forged.json.error.hint, /^bad_signature/);
      const unsigned = await world.send(mode, 'stripe', body, { headers: { 'stripe-signature': '' } });
      assert.equal(unsigned.status, 401);
      assert.equal(await world.event(`evt_forged_${mode}`), undefined);
    });

    it(`${mode}: a processing error is recorded as failed, and the retry succeeds`, async () => {
      const user = `error ${mode}`;
      const eventId = `evt_error_${mode}`;
      const body = paymentEvent(eventId, { metadata: { user_id: user } });
      await world.db2.query(
        `alter table public.credit_ledger add constraint broken_${mode} check (user_id <> '${user}')`,
      );
      const first = await world.send(mode, 'stripe', body);
      await world.process();
      const failed = await world.event(eventId);
      assert.equal(failed?.status, 'failed');
      assert.equal(failed?.attempts, 1);
      assert.match(failed?.error, new RegExp(`broken_${mode}`));
      assert.equal(failed?.raw_body, body);
      assert.deepEqual(await world.credited(user), { rows: 0, sum: 0 });
      await world.db2.query(`alter table public.credit_ledger drop constraint broken_${mode}`);
      if (mode === 'inline') {
        assertRefusal(first, 500, 'processing_failed');
        assert.equal(first.headers['retry-after'], '1');
      } else {
        assert.equal(first.status, 200);
        await world.db2.query(
          'update public.webhook_events set next_attempt_at = now() where event_id = $1',
          [eventId],
        );
      }
      const second = await world.send(mode, 'stripe', body);
      assert.equal(second.status, 200, second.text);
      await world.process();
      assert.equal((await world.event(eventId))?.status, 'success');
      assert.deepEqual(await world.credited(user), { rows: 1, sum: 100 });
    });

    it(`${mode}: an event that arrives out of order does not regress the state`, async () => {
      const about = { id: `pi_order_${mode}`, metadata: { user_id: `order ${mode}` } };
      const late = { ...about, type: 'payment_intent.processing', created: 1_770_000_000 };
      const done = { ...about, type: 'payment_intent.succeeded', created: 1_770_000_009 };
      for (const [id, change] of [
        [`evt_done_${mode}`, done],
        [`evt_late_${mode}`, late],
      ] as const) {
        assert.equal((await world.send(mode, 'stripe', paymentEvent(id, change))).status, 200);
        await world.process();
      }
      const [payment] = await world.rows('select state::text from public.payments where object_id = $1', [
        about.id,
      ]);
      assert.equal(payment?.state, 'succeeded');
      assert.equal((await world.event(`evt_late_${mode}`))?.status, 'skipped');
    });
  }

  it('the checks above see a handler without its guard: marked done twice, credited twice', async () => {
    // The published pattern "check, process, mark", run by two who both checked before either had marked.
    await world.db2.query('create table public.naive_ledger (event_id text, amount int)');
    const check = () => world.rows('select 1 from public.naive_ledger where event_id = $1', ['evt_naive']);
    const found = await Promise.all([check(), check()]);
    for (const rows of found)
      if (rows.length === 0)
        await world.db2.query('insert into public.naive_ledger values ($1, 100)', ['evt_naive']);
    const [sum] = await world.rows('select sum(amount)::int as sum from public.naive_ledger');
    assert.equal(sum?.sum, 200);
  });
});
