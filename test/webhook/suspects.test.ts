// An event that kills, hangs or locks harms no other event: every healthy neighbour succeeds, once.

import assert from 'node:assert/strict';
import { before, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { NO_METRICS } from '#core/ports.ts';
import { createLog } from '../../src/log.ts';
import { openProcessor, startWebhookCrew } from '../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { openSession } from '../support/sessions.ts';
import { useLedger } from '../support/suite.ts';
import { openShop, record, statusOf } from './sql_support.ts';

const NEIGHBOURS = 20;
const TURNS_MAX = 100;
const DEADLINE_MS = 30_000;

describe('the neighbours of an event that', () => {
  const database = useLedger('session');
  const { session } = database;
  let shop: string;
  before(async () => {
    shop = await openShop(session);
    await session.client.query(`
      create or replace function app.act(p_event public.webhook_events) returns text language plpgsql as $$
      begin
        insert into app.effects values (p_event.event_id);
        if p_event.payload ? 'kill' then perform pg_terminate_backend(pg_backend_pid()); end if;
        if p_event.payload ? 'assert' then assert false, 'as told'; end if;
        if p_event.payload ? 'raise' then raise exception 'as told' using errcode = p_event.payload ->> 'raise'; end if;
        return null;
      end $$`);
  });
  beforeEach(() => session.client.query('truncate public.webhook_events, app.effects'));

  const options = () => ({
    db2Url: database.url(),
    workers: 2,
    batchSize: 100,
    handlers: NO_HANDLERS,
    metrics: NO_METRICS,
    log: createLog('silent'),
  });
  const putAround = async (payload: string) => {
    await record(session, shop, ['before']);
    await record(session, shop, ['bad'], payload);
    await record(
      session,
      shop,
      Array.from({ length: NEIGHBOURS }, (_, index) => `after-${index}`),
    );
  };
  /** The clocks of leases and waits, moved instead of waited for. */
  const allDue = () =>
    session.client.query(
      `update public.webhook_events set next_attempt_at = now(), lease_until = now()
       where status in ('processing', 'failed')`,
    );
  const open = () =>
    session.value<number>(
      `select count(*)::int from public.webhook_events where status in ('pending', 'processing', 'failed')`,
    );
  const neighbours = () =>
    session.rows(
      `select e.status::text, count(*)::int as events, count(f.event_id)::int as effects
       from public.webhook_events e left join app.effects f using (event_id) where e.event_id <> 'bad' group by 1`,
    );
  const ALL_WELL = [{ status: 'success', events: NEIGHBOURS + 1, effects: NEIGHBOURS + 1 }];
  const drain = async (turn: () => Promise<unknown>) => {
    for (let turns = 0; (await open()) > 0; turns++) {
      assert(turns < TURNS_MAX, 'events stay open');
      await turn().catch(() => undefined);
      await allDue();
    }
  };
  const mostTakeovers = () =>
    session.value<number>(`select max(takeovers) from public.webhook_events where event_id <> 'bad'`);
  const bad = async () => {
    const [row] = await session.rows(
      `select status::text, error, attempts from public.webhook_events where event_id = 'bad'`,
    );
    return row;
  };

  it('is canceled succeed, and it has failed and is tried alone from then on', async () => {
    await putAround('{"raise": "57014"}');
    const { processor, end } = openProcessor(options());
    try {
      const { outcomes } = await processor.drain(new AbortController().signal);
      assert.deepEqual(outcomes, { success: NEIGHBOURS + 1, failed: 1 });
      assert.deepEqual(await bad(), { status: 'failed', error: 'as told', attempts: 1 });
    } finally {
      await end();
    }
    await record(session, shop, ['next']);
    await allDue();
    const taken = (functionName: string, more = '') =>
      session.value<string[]>(
        `select array_agg(e.event_id) from webhook.event_lanes() l, webhook.${functionName}(array[l.lane]${more}) t
         join public.webhook_events e on e.id = t.id`,
      );
    assert.deepEqual(await taken('take_events', ', array[100]'), ['next']);
    assert.deepEqual(await taken('take_suspect'), ['bad']);
  });

  it('kills its session succeed, and after ten deaths it is a dead letter', async () => {
    await putAround('{"kill": true}');
    const { processor, end } = openProcessor(options());
    try {
      await drain(() => processor.step(new AbortController().signal));
    } finally {
      await end();
    }
    assert.deepEqual(await neighbours(), ALL_WELL);
    assert.deepEqual(await bad(), { status: 'dead_letter', error: 'lease_lost_repeatedly', attempts: 1 });
    assert((await mostTakeovers()) <= 1, 'a neighbour lost its lease with it twice');
  });

  it('negative control: taken together with it again and again they would lose their leases with it', async () => {
    const definitions: string[] = [];
    for (const [name, care, carelessness] of [
      [
        'take_events(int[], int[])',
        `e.status in ('pending', 'failed') and e.takeovers = 0`,
        `e.status in ('pending', 'failed', 'processing')`,
      ],
      ['take_suspect(int[])', `d.status = 'processing' or d.takeovers > 0`, 'false'],
    ] as const) {
      const definition = await session.value<string>(
        `select pg_get_functiondef('webhook.${name}'::regprocedure)`,
      );
      assert(definition.includes(care));
      await session.client.query(definition.replace(care, carelessness));
      definitions.push(definition);
    }
    await putAround('{"kill": true}');
    const { processor, end } = openProcessor(options());
    try {
      for (let turn = 0; turn < 5; turn++) {
        await processor.step(new AbortController().signal).catch(() => undefined);
        await session.client.query(
          `update public.webhook_events set next_attempt_at = now() - interval '1 hour', lease_until = now()
           where status = 'processing'`,
        );
      }
    } finally {
      await end();
      for (const definition of definitions) await session.client.query(definition);
    }
    assert((await mostTakeovers()) > 1);
  });

  const CRON = {
    '{"assert": true}': 'as told',
    '{"raise": "57014"}': 'as told',
    '{"kill": true}': undefined,
  };
  for (const [payload, error] of Object.entries(CRON))
    it(`says ${payload} succeed also where cron does the work`, async () => {
      await putAround(payload);
      await drain(async () => {
        const cron = await openSession(database.url());
        try {
          await cron.client.query('call webhook.work()');
        } finally {
          await cron.close().catch(() => undefined);
        }
      });
      assert.deepEqual(await neighbours(), ALL_WELL);
      assert.deepEqual(
        [(await bad())?.status, (await bad())?.error],
        ['dead_letter', error ?? 'lease_lost_repeatedly'],
      );
    });

  it('waits for a lock on all payments are not given up: two workers wait with them, and then all succeed', async () => {
    const stripe = await session.value<string>(
      `select webhook.add_endpoint('stripe', 'stripe', '{OPS_SITE_SECRET}', 'queued', '{"lease_sec": 1}', 'test')`,
    );
    const locker = await openSession(database.url());
    await locker.client.query('begin; lock table public.payments in share mode');
    await session.client.query(
      `insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
       select $1, 'stripe', 'pay-' || n, 'payment_intent.succeeded', jsonb_build_object('data',
         jsonb_build_object('object', jsonb_build_object('id', 'pi_' || n, 'amount', 100, 'currency', 'eur',
           'metadata', '{"user_id": "ann"}'::jsonb)))
       from generate_series(1, 60) n`,
      [stripe],
    );
    const crew = startWebhookCrew(options());
    const until = async (sql: string) => {
      const deadline = Date.now() + DEADLINE_MS;
      while (!(await session.value<boolean>(sql))) {
        assert(Date.now() < deadline, sql);
        await pause(50);
      }
    };
    try {
      await until(`select count(*) > 0 from public.webhook_events where error like '%lock timeout%'`);
      await locker.client.query('rollback');
      await until(`select count(*) = 60 from public.webhook_events where status = 'success'`);
    } finally {
      await crew.stop();
      await locker.close();
    }
    const [sum] = await session.rows(
      `select max(attempts) as attempts, (select count(*)::int from public.credit_ledger) as credits
       from public.webhook_events`,
    );
    assert.deepEqual(sum, { attempts: 1, credits: 60 });
    assert.equal(await statusOf(session, 'pay-1'), 'success');
  });
});
