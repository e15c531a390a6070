// A history of one user in every table that can hold one, among many other users.

import type pg from 'pg';
import { drainOnce } from '../../src/bridge/crew.ts';
import { createMetrics } from '../../src/metrics.ts';
import { memoryLog } from '../core/support.ts';
import { putOnSale } from '../server/support.ts';

export interface Places {
  readonly db1: pg.Client;
  readonly db2: pg.Client;
  readonly db1Url: string;
  readonly db2Url: string;
}

export interface ClaimRow {
  readonly outcome: string;
  readonly claim_id: string;
  readonly resource_id: string;
}

export interface Taken {
  readonly msg_id: string;
  readonly read_ct: number;
  readonly message: Record<string, unknown>;
}

const BATCH = 1_000;
const SITE = 'ops';
const OTHER = 'another@example.com';

export async function claimFor(
  db1: pg.Client,
  pool: string,
  user: string,
  {
    verified = true,
    request = null,
    proof = null,
  }: { verified?: boolean; request?: string | null; proof?: object | null } = {},
): Promise<ClaimRow> {
  const { rows } = await db1.query(
    'select * from public.claim_batch(array[$1], array[$2], array[$3], array[$4::boolean], true, $5)',
    [pool, user, request, verified, proof === null ? null : JSON.stringify([proof])],
  );
  if (rows[0].outcome !== 'claimed') throw new Error(`claim of ${pool}: ${rows[0].outcome}`);
  return rows[0];
}

/** As a worker takes the messages of one pool, under a lease that outlasts the test. */
export async function take(db1: pg.Client, pool: string, wanted = 1): Promise<Taken[]> {
  const { rows } = await db1.query(
    'select t.* from public.bridge_take(array[intake.lane_of($1)], array[$2::int], 600) t',
    [pool, wanted],
  );
  return rows;
}

export async function finish(
  db1: pg.Client,
  taken: readonly Taken[],
  verdict: string,
  reason: string | null = null,
) {
  const { rows } = await db1.query(
    `select * from public.bridge_finish($1::bigint[], $2::int[], array_fill($3::text, array[cardinality($1::bigint[])]),
      array_fill($4::text, array[cardinality($1::bigint[])]), array_fill(0, array[cardinality($1::bigint[])]))`,
    [taken.map(({ msg_id }) => msg_id), taken.map(({ read_ct }) => read_ct), verdict, reason],
  );
  return rows.map(({ outcome }) => outcome);
}

/** Workers carry what is ready, and end what is to end. */
export async function carry({
  db1Url,
  db2Url,
}: Pick<Places, 'db1Url' | 'db2Url'>): Promise<Readonly<Record<string, number>>> {
  const options = {
    db1Url,
    db2Url,
    workers: 2,
    batchSize: BATCH,
    log: memoryLog(),
    metrics: createMetrics(),
  };
  return (await drainOnce(options, new AbortController().signal)).totals;
}

/** Other users: a claim, a ticket, a payment with its credit, an event, a side effect and a call each. */
export async function addCrowd(places: Places, users: number): Promise<void> {
  const { db1, db2 } = places;
  for (let from = 0; from < users; from += BATCH) {
    const names = Array.from({ length: Math.min(BATCH, users - from) }, (_, at) => `user-${from + at}`);
    await db1.query('select count(*) from public.claim_batch($1, $2, $3)', [
      names.map(() => 'gig'),
      names,
      names.map(() => null),
    ]);
  }
  await carry(places);
  const event = `jsonb_build_object('id', 'evt_' || n, 'data', jsonb_build_object('object', jsonb_build_object(
    'id', 'pi_' || n, 'amount', 1000 + n % 7, 'metadata', jsonb_build_object('user_id', 'user-' || n))))`;
  await db2.query(
    `insert into public.webhook_events (webhook_id, provider, event_id, event_type, status, payload, raw_body, payload_hash)
     select md5('crowd')::uuid, 'stripe', 'evt_' || n, 'payment_intent.succeeded', 'success', ${event},
       convert_to(${event}::text, 'UTF8'), md5(n::text)
     from generate_series(1, $1::int) n`,
    [users],
  );
  await db2.query(
    `insert into public.payments (provider, object_id, user_id, told, occurred_at, arrival, last_event_id, amount, currency, captured)
     select 'stripe', 'pi_' || n, 'user-' || n, 'succeeded', now(), n, 'evt_' || n, 1000 + n % 7, 'usd', 1000 + n % 7
     from generate_series(1, $1::int) n`,
    [users],
  );
  await db2.query(
    `insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
     select 'user-' || n, 1000 + n % 7, 'usd', 'payment', 'stripe', 'pi_' || n, 'evt_' || n, 'payment:pi_' || n || ':1'
     from generate_series(1, $1::int) n`,
    [users],
  );
  await db2.query(
    `insert into public.webhook_side_effects (provider, event_id, payload)
     select 'twilio', 'SM' || n, jsonb_build_object('From', 'user-' || n) from generate_series(1, $1::int) n`,
    [users],
  );
  await db2.query(
    `insert into public.calls (site_id, event_id, payload, signature_hash)
     select '${SITE}', 'call-' || n, jsonb_build_object('caller', 'user-' || n), md5(n::text) from generate_series(1, $1::int) n`,
    [users],
  );
}

/** Pools 'gig', 'door' (which keeps addresses) and 'flight' are there. `slots` are those of the first. */
export async function openPools(db1: pg.Client, slots: number): Promise<void> {
  await putOnSale(db1, 'gig', slots);
  await putOnSale(db1, 'door', 10, { max_per_address: 5 });
  await putOnSale(db1, 'letters', 10);
  await putOnSale(db1, 'flight', 20);
  await putOnSale(db1, 'paid', 10, {
    ...{ confirm_by: 'payment', price: 1000, currency: 'usd', payment_tenant: 'stripe', hold_sec: 3600 },
  });
}

/** Something of `id` in every place of the intake. */
export async function addToIntake(places: Places, id: string): Promise<void> {
  const { db1 } = places;
  await claimFor(db1, 'gig', id, { request: `order_of_${id}` });
  await claimFor(db1, 'gig', id, { verified: false });
  const released = await claimFor(db1, 'gig', id);
  await db1.query('select public.release_own_claim($1, $2, $3)', [
    released.claim_id,
    id,
    `given back by ${id}`,
  ]);
  const byOperator = await claimFor(db1, 'gig', id);
  await db1.query(`select public.release_claim_as_operator($1, 'ann', $2)`, [
    byOperator.claim_id,
    `${id} asked for it`,
  ]);
  await claimFor(db1, 'door', id, { proof: { address: '203.0.113.7' } });
  // An order that waits for its payment, and its session.
  const { claim_id } = await claimFor(db1, 'paid', id);
  await db1.query(`select public.begin_checkout($1, $2, 'https://tickets.example.com')`, [claim_id, id]);
  await carry(places);
  // Two dead letters, of which one is discarded: it is archived, and the ledger has a tombstone.
  for (let n = 0; n < 2; n++) await claimFor(db1, 'letters', id);
  await finish(db1, await take(db1, 'letters', 2), 'dead_letter', `the shop does not know ${id}`);
  await db1.query(
    `select * from public.discard_dead_letters((select array[min(msg_id)] from pgmq.q_intake_dlq), 'ann')`,
  );
  await carry(places);
  // By hand: a slot, its message, and a message that was archived.
  const { rows } = await db1.query(
    `update public.inventory_slots set status = 'RESERVED', locked_by = $1, locked_at = now()
     where id = (select id from public.inventory_slots where pool_id = 'letters' and status = 'AVAILABLE' limit 1) returning id`,
    [id],
  );
  const byHand = { pool_id: 'letters', resource_id: rows[0].id, user_id: id, state: 'queued' };
  await db1.query('select public.intake_queue_send($1)', [byHand]);
  await db1.query(`select pgmq.archive('intake_queue', public.intake_queue_send($1))`, [byHand]);
  await addToInbox(db1, id);
  await addIssue(db1, id);
}

/** An issue whose error names the user in a word without digits that no shape replaces. */
async function addIssue(client: pg.Client, id: string): Promise<void> {
  await client.query(
    `insert into audit.issues (id, kind, type, error, failures, dead_letters, first_seen_at, last_seen_at, example_id, example_error,
       opened_at)
     values (gen_random_uuid(), 'claim', 'refused', $1, 1, 1, now(), now(), '1', $2, now())`,
    [`the shop does not know ${id}`, `the shop does not know ${id} of 7`],
  );
}

async function addToInbox(db1: pg.Client, id: string): Promise<void> {
  const body = { id: 'evt_inbox', data: { object: { metadata: { user_id: id } } } };
  const event = (n: number) => ({
    kind: 'event',
    door: 'shop',
    received_at: new Date().toISOString(),
    ids: [`evt_inbox_${n}`],
    webhook_id: '00000000-0000-4000-8000-000000000001',
    provider: 'stripe',
    signature: 't=1',
    events: [
      {
        eventId: `evt_inbox_${n}`,
        eventType: 'x',
        occurredAt: null,
        payload: null,
        hash: 'h',
        dedupeHash: null,
        quarantine: null,
      },
    ],
    body: Buffer.from(JSON.stringify(body)).toString('base64'),
  });
  const call = {
    kind: 'call',
    door: SITE,
    received_at: new Date().toISOString(),
    ids: ['call-inbox'],
    call: { siteId: SITE, eventId: 'call-inbox', kind: 'x', payload: JSON.stringify({ caller: id }) },
  };
  const accept = async (message: unknown): Promise<string> =>
    (await db1.query('select i from public.inbox_accept($1) i', [JSON.stringify([message])])).rows[0].i;
  for (const n of [1, 2]) await accept(event(n));
  const dead = await db1.query('select * from public.inbox_take(2, 60)');
  await db1.query(`select public.inbox_finish($1, $2, '{dead_letter,dead_letter}', '{no,no}')`, [
    dead.rows.map(({ msg_id }) => msg_id),
    dead.rows.map(({ read_ct }) => read_ct),
  ]);
  await db1.query(
    `select public.inbox_discard((select array[min(msg_id)] from pgmq.q_event_inbox_dlq), 'ann')`,
  );
  await db1.query(`select pgmq.archive('event_inbox', $1::bigint)`, [await accept(event(3))]);
  await accept(call);
  await accept(event(4));
}

/** Something of `id` in every place of the ledger, beside the tickets that workers wrote. */
export async function addToLedger(db2: pg.Client, id: string): Promise<void> {
  await db2.query(`insert into webhook.secret_names (name) values ('SHOP_SECRET') on conflict do nothing`);
  for (const [name, provider] of [
    ['shop', 'stripe'],
    ['phones', 'twilio'],
  ])
    await db2.query(`select webhook.add_endpoint($1, $2, '{SHOP_SECRET}', 'queued', '{}', 'ann')`, [
      name,
      provider,
    ]);
  const object = { id: 'pi_erin', amount_received: 2500, currency: 'usd', metadata: { user_id: id } };
  const paid = { id: 'evt_erin', livemode: true, data: { object } };
  await record(db2, 'shop', 'evt_erin', 'payment_intent.succeeded', paid);
  // A payment for an order, which the intake decides about, and a refund that failed with the name in its error.
  await db2.query(
    `insert into public.claim_outbox (id, kind, payment_key, fact) values ('settle:stripe/pi_seat', 'settle', 'stripe/pi_seat', $1)`,
    [{ payment_key: 'stripe/pi_seat', user_id: id, verified: 'true', amount: 1000, currency: 'usd' }],
  );
  await db2.query(
    `insert into public.refunds_due (id, payment_key, amount, currency, reason, state, is_auto, refund_key, error)
     values ('settle:stripe/pi_gone', 'stripe/pi_gone', 1000, 'usd', 'sold_out', 'failed', true, 'key-1', $1)`,
    [`no card of ${id}`],
  );
  // The same id with another body, and a delivery of two events.
  await record(db2, 'shop', 'evt_erin', 'payment_intent.succeeded', { ...paid, note: `forged by ${id}` });
  await db2.query(
    `select * from webhook.record_events(array_fill((select webhook_id from webhook.find_endpoint('phones')), array[2]),
      '{two_1,two_2}', '{message,message}', null, array[$1::text, $2::text], array[encode(convert_to($3, 'UTF8'), 'base64'), null],
      '{00000000-0000-4000-8000-0000000000b1,00000000-0000-4000-8000-0000000000b1}', '{h1,h2}', null, null, null)`,
    [
      JSON.stringify({ From: id }),
      JSON.stringify({ From: OTHER }),
      JSON.stringify([{ From: id }, { From: OTHER }]),
    ],
  );
  // One that is not JSON, and one that failed with the name in its error.
  await db2.query(
    `select * from webhook.record_events(array[(select webhook_id from webhook.find_endpoint('shop'))], '{evt_bytes}', '{x}', null, null,
      array[encode(convert_to($1, 'UTF8'), 'base64')], null, '{h3}', null, null, '{nul_character}')`,
    [`not JSON: ${id}`],
  );
  await db2.query('call webhook.work()');
  await db2.query(
    `insert into public.webhook_events (webhook_id, provider, event_id, event_type, status, payload, error)
     select webhook_id, 'stripe', 'evt_failed', 'x', 'dead_letter', $2, $1 from webhook.find_endpoint('shop')`,
    [`order of ${id} is not known`, { order: { user_id: id } }],
  );
  await db2.query(
    `select webhook.reply_event((select e.id from public.webhook_events e where e.event_id = 'two_2'), $1)`,
    [`<Response><Say>${id}</Say></Response>`],
  );
  await db2.query(
    `select * from calls.record_calls('{${SITE}}', '{call-erin}', '{ended}', array[$1], array[now()], '{sig}')`,
    [JSON.stringify({ caller: id, to: { user_id: id } })],
  );
  await addIssue(db2, id);
}

async function record(
  db2: pg.Client,
  endpoint: string,
  eventId: string,
  type: string,
  body: object,
): Promise<void> {
  const text = JSON.stringify(body);
  await db2.query(
    `select * from webhook.record_events(array[(select webhook_id from webhook.find_endpoint($1))], array[$2], array[$3], null, null,
      array[encode(convert_to($4, 'UTF8'), 'base64')], null, array[md5($4)], null, null, null)`,
    [endpoint, eventId, type, text],
  );
}

/** A row of an audit log that was there before Sluice: no seal covers it, and it has the id itself. */
export async function addAdopted(client: pg.Client, id: string): Promise<void> {
  await client.query(`set session_replication_role = replica`);
  await client.query(
    `insert into audit.audit_logs (id, actor, action, subject, reason, details) overriding system value
     values (-5, 'trigger', 'UPDATE', 'orders', $1, $2)`,
    [`changed by ${id}`, { user_id: id, row: { email: id, note: `for ${id}!` } }],
  );
  await client.query(`set session_replication_role = origin`);
}
