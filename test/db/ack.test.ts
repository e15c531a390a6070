// An answer under quorum waits until the standby has all that it tells of, also where it writes nothing.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { toHttpError } from '#core/failure.ts';
import { readAck, sessionSettings } from '../../src/db/ack.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { type Pair, startPair } from '../support/standby.ts';

type Ask = readonly [functionName: string, args: Record<string, unknown>];

const log = createLog('silent');
const NO_ID = '99999999-9999-4999-8999-999999999999';
const TICKET = { resource_id: '11111111-1111-4111-8111-111111111111', pool_id: 'p', user_id: 'ann' };
const CLAIM_ID = '22222222-2222-4222-8222-222222222222';

const claimOf = (pool: string, request: string): Ask => [
  'public.claim_batch',
  { p_pool_ids: [pool], p_user_ids: ['ann'], p_request_ids: [request] },
];

/** How many sessions of this name wait for the standby. */
async function waiting(client: pg.Client, name: string): Promise<number> {
  const { rows } = await client.query(
    "select count(*)::int as n from pg_stat_activity where application_name = $1 and wait_event = 'SyncRep'",
    [name],
  );
  return rows[0].n;
}

function openAll(url: string, asks: readonly Ask[], name: string): Database[] {
  return asks.map(() => createDatabase({ url, max: 1, applicationName: name, log }));
}

async function connected(databases: readonly Database[]): Promise<void> {
  await Promise.all(databases.map((database) => database.call('pg_catalog.pg_backend_pid', {})));
}

/** Asks each on a connection of its own while the standby hangs; tells which answered, and which had to wait. */
async function askFrozen(pair: Pair, look: pg.Client, asks: readonly Ask[], name: string) {
  const databases = openAll(pair.first.url, asks, name);
  await connected(databases);
  pair.freeze(pair.second);
  const answered: string[] = [];
  const calls = asks.map(async ([functionName, args], index) => {
    const told = await databases[index]?.call(functionName, args).catch((error: unknown) => error);
    answered.push(functionName);
    return told;
  });
  while ((await waiting(look, name)) + answered.length < asks.length) await pause(20);
  const early = [...answered];
  pair.thaw(pair.second);
  const told = await Promise.all(calls);
  await Promise.all(databases.map((database) => database.end()));
  return { early, told };
}

for (const side of ['db1', 'db2'] as const) {
  describe(`an answer of ${side} under quorum`, () => {
    let pair: Pair;
    let look: pg.Client;
    let asks: readonly Ask[];

    before(async () => {
      pair = await startPair(side);
      look = await openClient(pair.first.url);
      asks = side === 'db1' ? await prepareIntake(look) : await prepareLedger(look);
      await pair.synchronous(true);
    });
    after(async () => {
      delete process.env.SLUICE_ACK;
      await look?.end();
      await pair?.stop();
    });

    it('waits for the standby, whatever it says', async () => {
      const { early, told } = await askFrozen(pair, look, asks, 'quorum');
      assert.deepEqual(early, []);
      const failed = told.filter((answer) => answer instanceof Error && !('code' in answer));
      assert.deepEqual(failed, []);
    });

    it('does not wait where SLUICE_ACK is local: a failover may take it back', async () => {
      process.env.SLUICE_ACK = 'local';
      const { early } = await askFrozen(pair, look, asks, 'local');
      delete process.env.SLUICE_ACK;
      assert.deepEqual(early.sort(), asks.map(([name]) => name).sort());
    });

    it('may be read in a transaction that is read only, as PostgREST reads', async () => {
      await look.query('begin read only');
      await look.query('select public.answer_in_cell()');
      await look.query('commit');
    });

    it('is unknown, and no success, when the wait is cancelled', async () => {
      const [database] = openAll(pair.first.url, [asks[0] as Ask], 'cancelled');
      await connected([database as Database]);
      pair.freeze(pair.second);
      const call = (database as Database).call(...(asks[0] as Ask)).then(
        () => 'it answered',
        (error: unknown) => toHttpError(error).kind.code,
      );
      await cancelWaiting(look, 'cancelled');
      assert.equal(await call, 'database_unavailable');
      await (database as Database).end();
      // The driver by itself takes it for a success: that is what the notice is read for.
      const plain = new pg.Client({ connectionString: pair.first.url, application_name: 'plain' });
      await plain.connect();
      const query = plain.query('select public.answer_in_cell()');
      await cancelWaiting(look, 'plain');
      assert.equal((await query).rowCount, 1);
      await plain.end();
      pair.thaw(pair.second);
    });
  });
}

async function cancelWaiting(look: pg.Client, name: string): Promise<void> {
  while ((await waiting(look, name)) < 1) await pause(20);
  await look.query('select pg_cancel_backend(pid) from pg_stat_activity where application_name = $1', [name]);
}

/** All that a client may be told without a change, and those changes whose second call changes nothing. */
async function prepareIntake(client: pg.Client): Promise<Ask[]> {
  await putOnSale(client, 'p', 10);
  await putOnSale(client, 'gone', 0);
  const claim = async (request: string): Promise<string> => {
    const { rows } = await client.query(
      "select claim_id from public.claim_batch(array['p'], array['ann'], array[$1])",
      [request],
    );
    return rows[0].claim_id;
  };
  await claim('same');
  const [seen, released] = [await claim('seen'), await claim('released')];
  await client.query("select public.release_own_claim($1, 'ann')", [released]);
  return [
    claimOf('p', 'same'),
    claimOf('gone', 'sold out'),
    claimOf('nowhere', 'unknown pool'),
    ['public.claim_resource_and_queue', { p_pool_id: 'gone', p_user_id: 'ann' }],
    ['public.claim_resource_and_queue', { p_pool_id: 'nowhere', p_user_id: 'ann' }],
    ['public.get_claim', { p_claim_id: seen }],
    ['public.get_claim', { p_claim_id: NO_ID }],
    ['public.pool_status', { p_pool_id: 'nowhere' }],
    ['public.release_own_claim', { p_claim_id: released, p_user_id: 'ann' }],
    ['public.release_own_claim', { p_claim_id: NO_ID, p_user_id: 'ann' }],
  ];
}

async function prepareLedger(client: pg.Client): Promise<Ask[]> {
  const payloads = JSON.stringify([{ ...TICKET, claim_id: CLAIM_ID }]);
  const { rows } = await client.query(
    "select webhook.add_endpoint('e', 'stripe', array['STRIPE_WEBHOOK_SECRET'], p_actor => 'test') as id",
  );
  const event = {
    p_webhook_ids: [rows[0]?.id],
    p_event_ids: ['evt_1'],
    p_event_types: ['a'],
    p_occurred_at: [null],
    p_payloads: ['{}'],
    p_bodies: ['e30='],
    p_body_ids: [null],
    p_hashes: ['aa'],
    p_dedupe_hashes: [null],
    p_signatures: [null],
    p_quarantines: [null],
  };
  const call = {
    p_site_ids: ['s'],
    p_event_ids: ['e'],
    p_kinds: ['k'],
    p_payloads: ['{}'],
    p_occurred_at: ['2026-02-24T10:00:00Z'],
    p_signature_hashes: ['ab'],
  };
  const asks: Ask[] = [
    ['public.tickets_of', { p_payloads: payloads }],
    ['public.finalize_batch', { p_payloads: payloads }],
    ['public.void_tickets', { p_claims: payloads }],
    ['public.ticket_of_claim', { p_claim_id: CLAIM_ID }],
    ['public.my_tickets', {}],
    ['webhook.find_endpoint', { p_name: 'none' }],
    ['webhook.record_events', event],
    ['calls.find_site', { p_site_id: 'none' }],
    ['calls.record_calls', call],
  ];
  return withFirst(client, asks);
}

/** The first calls are made here: what is asked later is the second. */
async function withFirst(client: pg.Client, asks: Ask[]): Promise<Ask[]> {
  const { host } = client;
  const database = createDatabase({
    url: `postgres://${client.user}:${client.password}@${host}:${client.port}/${client.database}`,
    max: 1,
    applicationName: 'first',
    log,
  });
  for (const name of ['public.finalize_batch', 'webhook.record_events', 'calls.record_calls']) {
    const [functionName, args] = asks.find(([one]) => one === name) as Ask;
    await database.call(functionName, args);
  }
  await database.end();
  return asks;
}

describe('SLUICE_ACK', () => {
  it('is local, quorum or not set', () => {
    assert.equal(readAck({}), undefined);
    assert.equal(readAck({ SLUICE_ACK: '' }), undefined);
    assert.equal(readAck({ SLUICE_ACK: 'quorum' }), 'quorum');
    assert.throws(() => readAck({ SLUICE_ACK: 'all' }), /SLUICE_ACK is "all"; it must be local or quorum/);
  });

  it('is told to the server with each session, and otherwise left to it', () => {
    const own = sessionSettings(undefined);
    assert.deepEqual(Object.keys(own), ['timezone', 'client_min_messages', 'jit']);
    const quorum = { ...own, 'sluice.ack': 'quorum', synchronous_commit: 'on' };
    assert.deepEqual(sessionSettings('quorum'), quorum);
    assert.deepEqual(sessionSettings('local'), {
      ...own,
      'sluice.ack': 'local',
      synchronous_commit: 'local',
    });
  });
});
