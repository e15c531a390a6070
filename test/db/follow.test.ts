// Workers go on at the new primary by themselves.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { NO_METRICS } from '#core/ports.ts';
import { createLog } from '../../src/log.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { startWebhookCrew } from '../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { type Pair, startPair } from '../support/standby.ts';
import { addEndpoint, paymentEvent } from '../webhook/world.ts';

const log = createLog('silent');

/** As the door records it. */
async function record(url: string, id: string): Promise<void> {
  await withClient(url, (client) =>
    client.query(
      `select webhook.record_events(
         array[e.webhook_id], array[$1::text], array['payment_intent.succeeded'], array[null::timestamptz], array[null::text],
         array[encode(convert_to($2, 'UTF8'), 'base64')], array[null::uuid], array[$1::text], array[null::text],
         array[null::text], array[null::text])
       from public.webhook_endpoints e`,
      [id, paymentEvent(id)],
    ),
  );
}

async function processed(url: string, id: string): Promise<void> {
  await withClient(url, async (client) => {
    const sql = 'select status from public.webhook_events where event_id = $1';
    while ((await client.query(sql, [id])).rows[0]?.status !== 'success') await pause(50);
  });
}

const LOSSES: Readonly<Record<string, (pair: Pair) => unknown>> = {
  'was killed': ({ first }) => process.kill(first.pid, 'SIGKILL'),
  'was shut down': ({ first }) => first.stop('fast'),
  hangs: (pair) => pair.freeze(pair.first),
  'was killed after all its waits were cancelled': async (pair) => {
    pair.freeze(pair.second);
    // It waits for the standby until its wait is cancelled: then the workers see the event, here alone.
    const recorded = record(pair.first.url, 'evt_lost');
    await withClient(pair.first.url, async (client) => {
      const waiting =
        "select pid from pg_stat_activity where wait_event = 'SyncRep' and application_name = $1";
      for (const name of ['sluice stack', 'sluice-webhook-worker']) {
        while ((await client.query(waiting, [name])).rows.length === 0) await pause(20);
        await client.query(`select pg_cancel_backend(w.pid) from (${waiting}) w`, [name]);
      }
    });
    await recorded;
    process.kill(pair.first.pid, 'SIGKILL');
    pair.thaw(pair.second);
  },
};

describe('workers of webhook events go on at the new primary', () => {
  for (const [loss, lose] of Object.entries(LOSSES))
    it(`when the old one ${loss}`, async () => {
      const pair = await startPair('db2');
      const crew = startWebhookCrew({
        db2Url: pair.url,
        workers: 2,
        batchSize: 100,
        handlers: NO_HANDLERS,
        metrics: NO_METRICS,
        log,
      });
      try {
        await withClient(pair.first.url, (client) => addEndpoint(client, 'e', 'stripe', 'queued'));
        await pair.synchronous(true);
        for (let at = 1; at <= 20; at++) await record(pair.first.url, `evt_a${at}`);
        await processed(pair.first.url, 'evt_a1');
        await lose(pair);
        await pair.promote();
        for (let at = 1; at <= 20; at++) await record(pair.second.url, `evt_b${at}`);
        for (let at = 1; at <= 20; at++) await processed(pair.second.url, `evt_b${at}`);
        await withClient(pair.second.url, async (client) => {
          const { rows } = await client.query('select sum(amount)::int as sum from public.credit_ledger');
          assert.ok(rows[0].sum >= 2_000);
        });
      } finally {
        pair.thaw(pair.first);
        await crew.stop();
        await pair.stop();
      }
    });
});
