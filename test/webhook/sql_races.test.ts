// Two real sessions at the same events: recorded once, taken by one, finished by who has the lease.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { closeAll, interleave, openSessions, type Session, waitsFor } from '../support/sessions.ts';
import {
  effectsOf,
  endLease,
  openShop,
  process,
  record,
  statusOf,
  take,
  takeSuspect,
} from './sql_support.ts';

const RACES = 40;
const EVENTS_PER_BATCH = 50;

describe('two sessions at the same events', () => {
  let databases: TestDatabases;
  let sessions: Session[];
  let first: Session;
  let second: Session;
  let observer: Session;
  let shop: string;
  let serial = 0;

  const fresh = (count: number) => Array.from({ length: count }, () => `evt-${++serial}`);
  const deadlocks = async () => {
    for (const session of [first, second]) await session.value('select pg_stat_force_next_flush()');
    return Number(
      await observer.value<string>(
        'select deadlocks from pg_stat_database where datname = current_database()',
      ),
    );
  };
  const outcomes = (rows: { outcome: string }[]) => rows.map(({ outcome }) => outcome);
  const replay = (session: Session, eventId: string) =>
    session.value<string>(
      `select outcome from webhook.replay_events(
         array(select id from public.webhook_events where event_id = $1), 'test')`,
      [eventId],
    );

  before(async () => {
    databases = await startDatabases({ db1: false, settings: { deadlock_timeout: '100ms' } });
    sessions = await openSessions(databases.db2.url, 3);
    [first, second, observer] = sessions as [Session, Session, Session];
    shop = await openShop(observer);
  });
  after(async () => {
    await closeAll(sessions ?? []);
    await databases?.stop();
  });
  beforeEach(() => observer.client.query('truncate public.webhook_events, app.effects'));

  test('of two batches with the same events one records them, the other waits and calls them duplicates', async () => {
    const ids = fresh(10);
    const answers = await interleave(
      observer,
      { session: first, run: () => record(first, shop, ids), end: 'commit' },
      { session: second, run: () => record(second, shop, ids.toReversed()) },
    );
    assert.deepEqual(new Set(outcomes(answers.first)), new Set(['recorded']));
    assert.deepEqual(new Set(outcomes(answers.second)), new Set(['duplicate']));
  });

  test('when the first batch is rolled back the second one records the events', async () => {
    const ids = fresh(10);
    const answers = await interleave(
      observer,
      { session: first, run: () => record(first, shop, ids), end: 'rollback' },
      { session: second, run: () => record(second, shop, ids.toReversed()) },
    );
    assert.deepEqual(new Set(outcomes(answers.second)), new Set(['recorded']));
  });

  test('the duplicate answers the status that the other session committed while it waited', async () => {
    const ids = fresh(1);
    const { second: rows } = await interleave(
      observer,
      {
        session: first,
        run: async () => {
          await record(first, shop, ids);
          return process(first, await take(first));
        },
        end: 'commit',
      },
      { session: second, run: () => record(second, shop, ids) },
    );
    assert.deepEqual([rows[0]?.outcome, rows[0]?.status], ['duplicate', 'success']);
  });

  test('batches with the same events in another order never deadlock', async () => {
    for (let race = 0; race < RACES; race += 1) {
      const ids = fresh(EVENTS_PER_BATCH);
      const answers = await Promise.all([record(first, shop, ids), record(second, shop, ids.toReversed())]);
      assert.equal(outcomes(answers.flat()).filter((outcome) => outcome === 'recorded').length, ids.length);
    }
  });

  test('batches with the same signed bodies under other ids never deadlock either', async () => {
    for (let race = 0; race < RACES; race += 1) {
      const hashes = fresh(EVENTS_PER_BATCH);
      const under = (name: string) => hashes.map((hash) => `${name}-${hash}`);
      const answers = await Promise.all([
        record(first, shop, under('a'), '{}', hashes),
        record(second, shop, under('b').toReversed(), '{}', hashes),
      ]);
      assert.equal(
        outcomes(answers.flat()).filter((outcome) => outcome === 'recorded').length,
        hashes.length,
      );
    }
  });

  test('negative control: without one order of the keys they deadlock', async () => {
    const [one, two] = fresh(2) as [string, string];
    for (const session of [first, second]) await session.client.query('begin');
    await record(first, shop, [one]);
    await record(second, shop, [two]);
    const waiting = record(first, shop, [two]);
    const settled = Promise.allSettled([waiting]);
    await waitsFor(observer, first, second);
    const ends = [...(await Promise.allSettled([record(second, shop, [one])])), ...(await settled)];
    for (const session of [first, second]) await session.client.query('rollback');
    const codes = ends.map((end) => (end.status === 'rejected' ? end.reason.code : 'fulfilled'));
    assert.deepEqual(codes.toSorted(), ['40P01', 'fulfilled']);
  });

  test('two workers take different events, and neither waits', async () => {
    const ids = fresh(10);
    await record(observer, shop, ids);
    await first.client.query('begin');
    const mine = await take(first, 4);
    const yours = await take(second, 10);
    await first.client.query('commit');
    assert.deepEqual([mine.length, yours.length], [4, 6]);
    assert.deepEqual([...mine, ...yours].map(({ event_id }) => event_id).toSorted(), ids.toSorted());
  });

  test('a worker that comes back after a takeover changes nothing', async () => {
    const [id] = fresh(1) as [string];
    await record(observer, shop, [id]);
    const late = await take(first);
    await endLease(observer, id);
    const current = await takeSuspect(second);
    assert.deepEqual(await process(first, late), ['lost_lease']);
    assert.deepEqual([await statusOf(observer, id), await effectsOf(observer, id)], ['processing', 0]);
    assert.deepEqual(await process(second, current), ['success']);
    assert.deepEqual(await process(first, late), ['lost_lease']);
    assert.equal(await effectsOf(observer, id), 1);
  });

  test('negative control: with the fence removed the late worker takes the effect a second time', async () => {
    const [id] = fresh(1) as [string];
    await record(observer, shop, [id]);
    const late = await take(first);
    await endLease(observer, id);
    const current = await takeSuspect(second);
    const definition = await first.value<string>(
      `select pg_get_functiondef('webhook.held_tasks(uuid[], uuid[])'::regprocedure)`,
    );
    const fence = `where e.status = 'processing' and e.lease_token = t.lease_token`;
    assert(definition.includes(fence));
    await process(second, current);
    await first.client.query('begin');
    await first.client.query(definition.replace(fence, ''));
    assert.deepEqual(await process(first, late), ['success']);
    assert.equal(await effectsOf(first, id), 2);
    await first.client.query('rollback');
  });

  test('a late worker waits for the one that is at it, and finds its lease lost', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      const [id] = fresh(1) as [string];
      await record(observer, shop, [id]);
      const late = await take(first);
      await endLease(observer, id);
      const current = await takeSuspect(second);
      const answers = await interleave(
        observer,
        { session: second, run: () => process(second, current), end },
        { session: first, run: () => process(first, late) },
      );
      assert.deepEqual([answers.first, answers.second], [['success'], ['lost_lease']]);
      assert.equal(await effectsOf(observer, id), end === 'commit' ? 1 : 0);
    }
  });

  test('an event that is held in a transaction is not taken over, though its lease has run out', async () => {
    const [id] = fresh(1) as [string];
    await record(observer, shop, [id]);
    const [lease] = await take(first);
    assert(lease);
    await endLease(observer, id);
    await first.client.query('begin');
    assert.equal(await first.value('select webhook.hold_event($1, $2)', [lease.id, lease.lease_token]), true);
    assert.deepEqual(await takeSuspect(second), []);
    const finish = () =>
      first.value('select webhook.finish_event($1, $2, $3)', [lease.id, lease.lease_token, 'success']);
    assert.equal(await finish(), 'success');
    await first.client.query('commit');
    assert.equal(await statusOf(observer, id), 'success');
    assert.equal(await finish(), 'lost_lease');
  });

  test('negative control: an event that no transaction holds is taken over, and its late finish refused', async () => {
    const [id] = fresh(1) as [string];
    await record(observer, shop, [id]);
    const [lease] = await take(first);
    assert(lease);
    await endLease(observer, id);
    assert.equal((await takeSuspect(second)).length, 1);
    const finished = await first.value('select webhook.finish_event($1, $2, $3)', [
      lease.id,
      lease.lease_token,
      'success',
    ]);
    assert.deepEqual([finished, await statusOf(observer, id)], ['lost_lease', 'processing']);
  });

  test('a heartbeat does not wait for the event that a sibling holds, and extends the others', async () => {
    const ids = fresh(3);
    await record(observer, shop, ids);
    const leases = await take(first);
    const held = leases[1];
    assert(held);
    await second.client.query('begin');
    await second.value('select webhook.hold_event($1, $2)', [held.id, held.lease_token]);
    const extended = await first.rows<{ id: string }>('select id from webhook.extend_leases($1, $2) id', [
      leases.map(({ id }) => id),
      leases.map(({ lease_token }) => lease_token),
    ]);
    await second.client.query('rollback');
    const others = leases.filter((lease) => lease !== held).map(({ id }) => id);
    assert.deepEqual(extended.map(({ id }) => id).toSorted(), others.toSorted());
  });

  test('who claimed an event cannot mark it under the lease of another; that one can', async () => {
    const [id] = fresh(1) as [string];
    await record(observer, shop, [id]);
    const claim = (session: Session) => session.value<string>('select id from webhook.claim_next_event()');
    const mark = (session: Session, event: string, status: string) =>
      session.value('select webhook.mark_event_result($1, $2, $3)', [event, status, 'marked']);
    const event = await claim(first);
    await endLease(observer, id);
    assert.equal(await claim(second), event);
    for (const late of [first, observer])
      await assert.rejects(mark(late, event, 'dead_letter'), { code: 'SL033' });
    await mark(second, event, 'success');
    assert.equal(await statusOf(observer, id), 'success');
  });

  test('handlers that deadlock lose nothing: each event has one effect, and no attempt is counted', async () => {
    const before = await deadlocks();
    const [held, crossing, crossed] = fresh(3) as [string, string, string];
    await record(observer, shop, [held], '{"account": 1}');
    const firstLease = await take(first);
    await record(observer, shop, [crossing], '{"account": 2}');
    const crossingLease = await take(first);
    const crossedIds = fresh(1);
    await record(observer, shop, [crossed], '{"account": 2}');
    await record(observer, shop, crossedIds, '{"account": 1}');
    const secondLeases = await take(second);

    await first.client.query('begin');
    await process(first, firstLease);
    // Has account 2 and waits for account 1, which the first session has; then the first one asks for account 2.
    const waiting = process(second, secondLeases);
    await waitsFor(observer, second, first);
    const mine = await process(first, crossingLease);
    await first.client.query('commit');
    const yours = await waiting;
    assert([...mine, ...yours].every((outcome) => ['success', 'failed'].includes(outcome)));

    await observer.client.query(
      'update public.webhook_events set next_attempt_at = now() where status = $1',
      ['failed'],
    );
    await process(observer, await take(observer));
    for (const id of [held, crossing, crossed, ...crossedIds]) {
      const ended = [await statusOf(observer, id), await effectsOf(observer, id)];
      assert.deepEqual([id, ...ended], [id, 'success', 1]);
    }
    assert.equal(await observer.value('select max(attempts) from public.webhook_events'), 1);
    assert((await deadlocks()) > before, 'there was none, so this has shown nothing');
  });

  test('two deliveries that process the event inline give it one effect', async () => {
    const [id] = fresh(1) as [string];
    await record(observer, shop, [id]);
    const inline = (session: Session) =>
      session.value<string>(
        `select p.outcome from public.webhook_events e cross join lateral webhook.process_event(e.id) p
         where e.event_id = $1`,
        [id],
      );
    await first.client.query('begin');
    assert.equal(await inline(first), 'success');
    // Not waited for: who delivers again is answered while the first is at it.
    assert.equal(await inline(second), 'in_flight');
    await first.client.query('commit');
    assert.equal(await inline(second), 'success');
    assert.equal(await effectsOf(observer, id), 1);
  });

  test('an event that its handler is at can be recorded again: a duplicate at once', async () => {
    const [id, neighbour] = fresh(2) as [string, string];
    await record(observer, shop, [id], '{"account": 1}');
    await first.client.query('begin');
    await first.client.query('update app.accounts set events = events where account = 1');
    const running = second.value<string>(
      `select p.outcome from public.webhook_events e cross join lateral webhook.process_event(e.id) p
       where e.event_id = $1`,
      [id],
    );
    await waitsFor(observer, second, first);
    await observer.client.query(`set lock_timeout = '100ms'`);
    assert.deepEqual(outcomes(await record(observer, shop, [id, neighbour], '{"account": 1}')), [
      'duplicate',
      'recorded',
    ]);
    await observer.client.query('reset lock_timeout');
    await first.client.query('rollback');
    assert.equal(await running, 'success');
    assert.equal(await effectsOf(observer, id), 1);
  });

  test('an event whose row another transaction is changing can be recorded again too', async () => {
    const [id, neighbour] = fresh(2) as [string, string];
    await record(observer, shop, [id]);
    await first.client.query('begin');
    await first.client.query(`update public.webhook_events set error = 'mine' where event_id = $1`, [id]);
    await second.client.query(`set lock_timeout = '100ms'`);
    assert.deepEqual(outcomes(await record(second, shop, [id, neighbour])), ['duplicate', 'recorded']);
    await second.client.query('reset lock_timeout');
    await first.client.query('rollback');
  });

  test('two who look for the next event each get their own, however many are locked in front', async () => {
    await record(observer, shop, fresh(30));
    const claim = `select event_id from webhook.claim_next_event()`;
    await first.client.query('begin');
    const mine = new Set<string>();
    for (let turn = 0; turn < 15; turn += 1) mine.add(await first.value<string>(claim));
    const yours = await second.value<string>(claim);
    await first.client.query('commit');
    assert.deepEqual([mine.size, mine.has(yours)], [15, false]);
  });

  test('a replay finds an event that is leased in flight', async () => {
    const [id] = fresh(1) as [string];
    await record(observer, shop, [id]);
    await take(first);
    assert.equal(await replay(second, id), 'in_flight');
  });

  test('a replay waits for the worker that is at it, and acts on how that ended', async () => {
    const ends = { '{}': 'already_processed', '{"raise": "SL030"}': 'replayed' };
    for (const [payload, expected] of Object.entries(ends)) {
      const [id] = fresh(1) as [string];
      await record(observer, shop, [id], payload);
      const lease = await take(first);
      const answers = await interleave(
        observer,
        { session: first, run: () => process(first, lease), end: 'commit' },
        { session: second, run: () => replay(second, id) },
      );
      assert.equal(answers.second, expected);
      await take(observer);
    }
  });
});
