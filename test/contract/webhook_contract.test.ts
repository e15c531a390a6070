// The contract of a webhook pipeline, in the order in which an event meets it: recorded, processed once, sent again,
// failing, dead-lettered, replayed. Server and workers run here as `npm start` runs them; the replay is the real script.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { createLog } from '../../src/log.ts';
import { createMetrics } from '../../src/metrics.ts';
import { pseudonymsBy } from '../../src/server/backlog.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { startWebhookCrew } from '../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import type { Worker } from '../../src/worker.ts';
import { ADMIN_KEY, ask, JWT_SECRET, openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';
import { addEndpoint, SECRETS, send } from '../webhook/world.ts';
import { DOCUMENTED, readSample } from './docs.ts';

const WEBHOOK_ID = '00000000-0000-0000-0000-000000000001';
const SCRIPT = join(PROJECT, 'tools', 'webhook_replay.sh');
const DEADLINE_MS = 15_000;
const POLL_MS = 20;
/** The handler of the contract: its effect is a row, and it throws for as long as it is told to. */
const HANDLER = `
  create table public.contract_switch (is_broken boolean);
  insert into public.contract_switch values (true);
  create function public.contract_handler(p_event public.webhook_events) returns text language plpgsql as $$
  begin
    if p_event.payload ? 'fail' and (select is_broken from public.contract_switch) then
      raise exception 'simulated handler error';
    end if;
    insert into public.webhook_side_effects (provider, event_id, payload)
    values (p_event.provider, p_event.event_id, p_event.payload) on conflict do nothing;
    return null;
  end $$;
  insert into public.webhook_handlers (provider, event_type, kind, name)
  values ('unknown', '*', 'sql', 'public.contract_handler');
  insert into public.webhook_endpoints (webhook_id, name, provider, secret_names, max_attempts, backoff_cap_sec)
  values ('${WEBHOOK_ID}', 'contract', 'stripe', '{STRIPE_WEBHOOK_SECRET}', 2, 1);`;

describe('the webhook contract', () => {
  let databases: TestDatabases;
  let db2: pg.Client;
  let crew: Worker;
  let server: RunningServer;

  before(async () => {
    databases = await startDatabases();
    db2 = await openClient(databases.db2.url);
    await db2.query(HANDLER);
    const metrics = createMetrics();
    crew = startWebhookCrew({
      db2Url: databases.db2.url,
      workers: 2,
      batchSize: 10,
      handlers: NO_HANDLERS,
      metrics,
      log: createLog(),
    });
    server = await startServer({
      metricsOpen: true,
      port: 0,
      db1Url: databases.db1.url,
      db2Url: databases.db2.url,
      adminKey: ADMIN_KEY,
      jwtSecret: JWT_SECRET,
      secretOf: (name) => SECRETS[name],
      onRecorded: crew.wake,
      metrics,
    });
  });
  after(async () => {
    if (db2 !== undefined) await dump(db2);
    await server?.stop();
    await crew?.stop();
    await db2?.end();
    await databases?.stop();
  });

  /** Inserts as a client that writes into the table directly. */
  const insertEvent = async (eventId: string, payload: object) => {
    const { rowCount } = await db2.query(
      `insert into webhook_events (webhook_id, event_id, payload, status, received_at)
       values ($1::uuid, $2::text, $3::jsonb, 'pending', now())
       on conflict (webhook_id, event_id) do nothing`,
      [WEBHOOK_ID, eventId, payload],
    );
    crew.wake();
    return rowCount;
  };
  const effects = async (eventId: string): Promise<number> =>
    (await db2.query('select count(*)::int as n from webhook_side_effects where event_id = $1', [eventId]))
      .rows[0].n;
  const eventOf = async (eventId: string) =>
    (
      await db2.query('select status::text, attempts, error from webhook_events where event_id = $1', [
        eventId,
      ])
    ).rows[0];
  const until = async (eventId: string, status: string) => {
    const deadline = Date.now() + DEADLINE_MS;
    for (;;) {
      const event = await eventOf(eventId);
      if (event?.status === status) return event;
      assert(Date.now() < deadline, `${eventId} is ${JSON.stringify(event)} and not ${status}`);
      await delay(POLL_MS);
    }
  };
  const replay = (...args: string[]) =>
    spawnSync(SCRIPT, args, {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, DATABASE_URL: databases.db2.url, USER: 'night shift' },
    });
  /** Waits until the page says so: a try is counted after its commit, and what DB2 knows may be a second old. */
  const untilCounted = async (count: number, name: string, label: string) => {
    const deadline = Date.now() + DEADLINE_MS;
    for (;;) {
      const { text } = await ask(`${server.url}/metrics`);
      const lines = text.split('\n').filter((one) => one.startsWith(`${name}{`) && one.includes(label));
      // Endpoints without an event stand there with 0.
      if (lines.some((line) => line.endsWith(` ${count}`))) return;
      assert(Date.now() < deadline, `${name} ${label} is not ${count}: ${lines.join()}`);
      await delay(POLL_MS);
    }
  };

  it('processes an inserted event: status success, and its side effect exists once', async () => {
    assert.equal(await insertEvent('evt-1', { foo: 'bar' }), 1);
    await until('evt-1', 'success');
    assert.equal(await effects('evt-1'), 1);
    await untilCounted(1, 'webhook_processing_total', 'result="success"');
  });

  it('makes no duplicate side effect when the same event_id is sent again', async () => {
    assert.equal(await insertEvent('evt-1', { foo: 'bar' }), 0);
    assert.equal(await insertEvent('evt-2', { foo: 'bar' }), 1);
    await until('evt-2', 'success');
    assert.equal(await effects('evt-1'), 1);
  });

  it('moves an event whose handler keeps throwing to dead_letter after the last attempt, and counts it', async () => {
    await insertEvent('evt-fail', { fail: true });
    const dead = await until('evt-fail', 'dead_letter');
    assert.equal(dead.attempts, 2);
    assert.match(dead.error, /simulated handler error/);
    assert.equal(await effects('evt-fail'), 0);
    await untilCounted(1, 'webhook_processing_total', 'result="failed"');
    await untilCounted(1, 'webhook_dead_letter_total', 'reason="handler_error"');
    await untilCounted(1, 'webhook_backlog', 'status="dead_letter"');
  });

  it('changes nothing in a dry run of webhook_replay.sh', async () => {
    const dry = replay('--event-id', 'evt-fail', '--dry-run');
    assert.equal(dry.status, 0, dry.stderr);
    assert.match(dry.stdout, /would_replay/);
    assert.equal((await eventOf('evt-fail')).status, 'dead_letter');
  });

  it('processes the dead letter after webhook_replay.sh, and the audit log names the operator', async () => {
    await db2.query('update public.contract_switch set is_broken = false');
    const { status, stderr } = replay('--event-id', 'evt-fail', '--reason', 'handler mended');
    assert.equal(status, 0, stderr);
    await until('evt-fail', 'success');
    assert.equal(await effects('evt-fail'), 1);
    const { rows } = await db2.query(
      `select actor, reason, details ->> 'status' as was from audit.audit_logs where action = 'webhook_replay'`,
    );
    assert.deepEqual(rows, [{ actor: 'owner (night shift)', reason: 'handler mended', was: 'dead_letter' }]);
    // The page shows a pseudonym, which the holder of the admin key can compute.
    const pseudonym = pseudonymsBy(ADMIN_KEY)('owner (night shift)');
    await untilCounted(1, 'webhook_replay_total', `operator="${pseudonym}"`);
  });

  it('has no second effect when a processed event is replayed', async () => {
    const { status, stdout } = replay('--event-id', 'evt-fail');
    assert.equal(status, 1);
    assert.match(stdout, /already_processed/);
    assert.equal((await eventOf('evt-fail')).status, 'success');
    assert.equal(await effects('evt-fail'), 1);
  });

  for (const provider of DOCUMENTED) {
    it(`takes the documented sample of ${provider} three times over HTTP and lets each event take effect once`, async () => {
      const { body, contentType } = readSample(provider);
      await addEndpoint(db2, provider, provider, 'queued');
      const url = `${server.url}/webhooks/${provider}`;
      const answers = [];
      for (let delivery = 0; delivery < 3; delivery++)
        answers.push(await send({ url, provider, body, headers: { 'content-type': contentType } }));
      assert.deepEqual(
        answers.map(({ status, json }) => [status, json.status]),
        [
          [200, 'recorded'],
          [200, 'duplicate'],
          [200, 'duplicate'],
        ],
      );
      const forged = await send({
        url,
        provider,
        body,
        secret: 'Zm9yZ2Vk',
        headers: { 'content-type': contentType },
      });
      assert.equal(forged.status, 401);
      for (const { event_id } of answers[0]?.json.events ?? []) {
        await until(event_id, 'success');
        const { rows } = await db2.query(
          `select (select count(*)::int from webhook_side_effects where event_id = $1)
             + (select count(*)::int from credit_ledger where event_id = $1) as n`,
          [event_id],
        );
        assert.equal(rows[0].n, 1, event_id);
      }
    });
  }
});

/** What CI keeps when it is told where. */
async function dump(db2: pg.Client): Promise<void> {
  const dir = process.env.SLUICE_CONTRACT_DUMP;
  if (!dir) return;
  mkdirSync(dir, { recursive: true });
  for (const table of ['public.webhook_events', 'public.webhook_side_effects', 'audit.audit_logs']) {
    const { rows } = await db2.query(`select to_jsonb(t) as row from ${table} t`);
    writeFileSync(
      join(dir, `${table}.json`),
      `${JSON.stringify(
        rows.map(({ row }) => row),
        null,
        2,
      )}\n`,
    );
  }
}
