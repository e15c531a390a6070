// Every step on the list of events is taken by the functions that it names, and no other.

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { EVENTS } from '../../tools/machines/events.ts';
import { compare, type Step, stepsOf, told } from '../../tools/machines/machine.ts';
import { useLedger } from '../support/suite.ts';
import { RECORDER, recording, takenSteps } from './recorder.ts';

type Event = { id: string; lease_token: string };

/** One of each lane that has an event. */
const TAKE = `(select array_agg(l.lane) as lanes, array_agg(1) as wanted from webhook.event_lanes() l) open,
  webhook.take_events(open.lanes, open.wanted)`;

/** The handler does what the event's payload says. */
const SHOP = `
  create schema app;
  create function app.act(p_event public.webhook_events) returns text language plpgsql as $$
  begin
    case p_event.payload ->> 'outcome'
      when 'skipped' then return 'nothing to do';
      when 'failed' then raise exception 'as told';
      when 'dead_letter' then raise exception 'as told' using errcode = 'SL030';
      else return null;
    end case;
  end $$;
  insert into public.webhook_handlers (provider, event_type, kind, name)
  values ('shop', 'act', 'sql', 'app.act'), ('shop', 'ts', 'typescript', 'ours');`;

describe('events go the ways that are on the list', () => {
  const { session } = useLedger('session');
  let webhookId: string;
  /** Two of one tenant: one takes live events, the other tests. */
  const pair = { live: '', test: '' };
  let events = 0;

  before(async () => {
    await session.client.query(SHOP + RECORDER + recording(EVENTS));
    webhookId = await session.value(
      `select webhook.add_endpoint('shop', 'shop', '{OPS_SITE_SECRET}', 'queued', '{}', 'test')`,
    );
    for (const mode of ['live', 'test'] as const)
      pair[mode] = await session.value(
        `select webhook.add_endpoint($1::text, 'stripe', '{OPS_SITE_SECRET}', 'queued', jsonb_build_object('livemode', $1::text), 'test',
           null, case $1::text when 'test' then 'stripe' end)`,
        [mode],
      );
  });

  const run = (sql: string, values: unknown[] = []) => session.rows(sql, values);
  const record = async (type: string, quarantine: string | null = null): Promise<string> => {
    // Each step has the table for itself: takes take what is due.
    await run('delete from public.webhook_events');
    const id = `evt_${++events}`;
    await run(
      `select * from webhook.record_events(array[$1::uuid], array[$2], array[$3], null, array['{}'], null, null,
         array[$2], null, null, array[$4])`,
      [webhookId, id, type, quarantine],
    );
    return session.value('select id from public.webhook_events where event_id = $1', [id]);
  };
  /** A test event at either endpoint: the live one skips it, the other one records it. */
  const recordTest = (mode: keyof typeof pair) =>
    run(
      `select * from webhook.record_events(array[$1::uuid], array['test'], array['act'], null, array['{"livemode": false}'],
         null, null, array['hash'], null, null, null)`,
      [pair[mode]],
    );
  const take = async (): Promise<Event> => {
    await run('update public.webhook_events set next_attempt_at = now(), lease_until = now()');
    const [event] = await session.rows<Event>(`select id, lease_token from ${TAKE}`);
    assert(event !== undefined);
    return event;
  };
  const finish = async ({ id, lease_token }: Event, outcome: string) => {
    await run('begin');
    await run('select webhook.hold_event($1, $2)', [id, lease_token]);
    await run('select webhook.finish_event($1, $2, $3)', [id, lease_token, outcome]);
    await run('commit');
  };
  /** An event that came there by public functions. What was skipped was skipped by an operator: that can be replayed. */
  const eventIn = async (state: string | null, type = 'act'): Promise<Event> => {
    const id = await record(type);
    if (state === 'skipped') await run(`select * from webhook.skip_events(array[$1::uuid], 'test')`, [id]);
    if (state === 'pending' || state === 'skipped') return { id, lease_token: '' };
    const event = await take();
    if (state === 'failed' || state === 'dead_letter') await finish(event, state);
    return event;
  };
  const become = (outcome: string, takeovers = 0) =>
    run(
      `update public.webhook_events
       set payload = jsonb_build_object('outcome', $1::text), takeovers = $2, next_attempt_at = now(), lease_until = now()`,
      [outcome, takeovers],
    );

  /** Due: new, failed, or under a lease that has run out. A tenth takeover is a dead letter. */
  const due = async ({ from, to }: Step, type = 'act'): Promise<Event> => {
    const event = await eventIn(from, type);
    await become('success', to === 'dead_letter' ? 9 : 0);
    return event;
  };
  const claimNext = async (): Promise<Event> => {
    const [event] = await session.rows<Event>('select id from webhook.claim_next_event()');
    return event ?? { id: '', lease_token: '' };
  };

  /** A session of Stripe that paid this. */
  const pull = (session: string, payment: string) =>
    run(`select public.record_pulled('stripe', $1)`, [
      {
        ...{ id: session, object: 'checkout.session', payment_intent: payment, payment_status: 'paid' },
        ...{ amount_total: 10, currency: 'eur', livemode: true, metadata: { user_id: 'ann' } },
      },
    ]);
  /** The charge tells that all of it went back. */
  const refundByCharge = async (payment: string) => {
    const object = {
      id: `ch_${events}`,
      payment_intent: payment,
      amount: 10,
      amount_refunded: 10,
      currency: 'eur',
    };
    const payload = JSON.stringify({ livemode: true, data: { object: { ...object, captured: true } } });
    await run(
      `select webhook.process_event(r.id) from webhook.record_events(array[$1::uuid], array[$2], array['charge.refunded'], null,
         array[$3], null, null, array[$2], null, null, null) r`,
      [pair.live, `evt_refunded_${events}`, payload],
    );
  };

  const DRIVERS: Record<string, (step: Step) => Promise<unknown>> = {
    async record_events({ from, to }) {
      if (from === null && to !== 'skipped') return record('act', to === 'dead_letter' ? 'no JSON' : null);
      await run('delete from public.webhook_events');
      await recordTest('live');
      return from === 'skipped' ? recordTest('test') : undefined;
    },
    async take_events(step) {
      await due(step);
      return run(`select * from ${TAKE}`);
    },
    async take_suspect(step) {
      await due(step);
      // One that failed is a suspect where it was too slow.
      if (step.from === 'failed') await become('success', 1);
      return run('select * from webhook.take_suspect(array(select l.lane from webhook.event_lanes() l))');
    },
    async claim_next_event(step) {
      await due(step);
      return claimNext();
    },
    async begin_typescript_event(step) {
      const { id } = await due(step, 'ts');
      return run(`select * from webhook.begin_typescript_event($1, '{ours}')`, [id]);
    },
    /** It takes and tries in one call, so what it leaves behind is the step before or after. */
    async work({ from, to }) {
      await eventIn(from);
      const isTakeover = from === 'processing' && to === 'dead_letter';
      await become(to, 0);
      await run('call webhook.work(1)');
      if (!isTakeover) return;
      await eventIn(from);
      await become('success', 9);
      await run('call webhook.work(1)');
    },
    finish_event: async ({ from, to }) => finish(await eventIn(from), to),
    async process_events({ from, to }) {
      const { id, lease_token } = await eventIn(from);
      await run(`update public.webhook_events set payload = jsonb_build_object('outcome', $1::text)`, [to]);
      return run('select * from webhook.process_events(array[$1::uuid], array[$2::uuid])', [id, lease_token]);
    },
    async mark_event_result({ to }) {
      await eventIn('pending');
      const { id } = await claimNext();
      return run('select webhook.mark_event_result($1, $2)', [id, to]);
    },
    async process_event({ from, to }) {
      const { id } = await eventIn(from);
      await become(to);
      return run('select * from webhook.process_event($1)', [id]);
    },
    async record_pulled({ to }) {
      const payment = `pi_${++events}`;
      await pull(`cs_${events}`, payment);
      // Another session that tells the same payment tells nothing.
      return to === 'skipped' ? pull(`cs_${events}_again`, payment) : undefined;
    },
    async refund_sent({ to }) {
      const payment = `pi_${++events}`;
      await pull(`cs_${events}`, payment);
      if (to === 'skipped') await refundByCharge(payment);
      await run(
        `insert into public.refunds_due (id, payment_key, amount, currency, reason, state, is_auto, refund_key, token)
         values ($1, 'stripe/' || $1, 10, 'eur', 'test', 'due', false, $1, gen_random_uuid())`,
        [payment],
      );
      return run('select public.refund_sent(r.id, r.token, $2) from public.refunds_due r where r.id = $1', [
        payment,
        {
          id: `re_${events}`,
          object: 'refund',
          payment_intent: payment,
          amount: 10,
          currency: 'eur',
          status: 'succeeded',
        },
      ]);
    },
    replay_events: async ({ from }) =>
      run(`select * from webhook.replay_events(array[$1::uuid], 'test')`, [(await eventIn(from)).id]),
    async skip_events(step) {
      const { id } = await due(step);
      return run(`select * from webhook.skip_events(array[$1::uuid], 'test')`, [id]);
    },
  };

  for (const step of stepsOf(EVENTS))
    it(told(step), async () => {
      const drive = DRIVERS[step.by];
      assert(drive !== undefined, `this test does not know ${step.by}`);
      await drive(step);
      assert((await takenSteps(session.rows)).map(told).includes(told(step)), 'it was not taken');
    });

  it('and no others', async () => {
    assert.deepEqual(compare(EVENTS, await takenSteps(session.rows)), { unknown: [], untaken: [] });
  });

  it('and a statement that goes another way is noticed', async () => {
    const { id } = await eventIn('dead_letter');
    await run(`update public.webhook_events set status = 'success' where id = $1`, [id]);
    assert.deepEqual(compare(EVENTS, await takenSteps(session.rows)).unknown, [
      'dead_letter → success by a plain statement',
    ]);
  });
});
