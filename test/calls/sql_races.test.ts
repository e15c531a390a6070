import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { closeAll, interleave, openSessions, type Session, waitsFor } from '../support/sessions.ts';

type Sent = { event?: string; hash: string };

const record = (session: Session, calls: Sent[], functionName = 'calls.record_calls') =>
  session.rows<{ id: string; outcome: string }>(
    `select id, outcome from ${functionName}($1, $2, $3, $4, $5, $6) order by ordinal`,
    [
      calls.map(() => 's'),
      calls.map(({ event }) => event ?? null),
      calls.map(() => 'ring'),
      calls.map(() => '{}'),
      calls.map(() => '2026-02-24T10:00:00Z'),
      calls.map(({ hash }) => hash),
    ],
  );

describe('two servers that record at the same time', () => {
  let databases: TestDatabases;
  let sessions: [Session, Session, Session, Session];

  before(async () => {
    databases = await startDatabases({ db1: false, settings: { deadlock_timeout: '20ms' } });
    const { url } = databases.db2;
    sessions = (await openSessions(url, 4)) as typeof sessions;
  });
  beforeEach(() => sessions[0].rows('truncate public.calls'));
  after(async () => {
    await closeAll(sessions ?? []);
    await databases?.stop();
  });

  const race = (end: 'commit' | 'rollback', one: Sent[], other: Sent[]) => {
    const [observer, first, second] = sessions;
    return interleave(
      observer,
      { session: first, run: () => record(first, one), end },
      { session: second, run: () => record(second, other) },
    );
  };

  it('the second waits for the first, and its call is the duplicate of what the first committed', async () => {
    const { first, second } = await race('commit', [{ hash: 'h1' }], [{ hash: 'h2' }, { hash: 'h1' }]);
    assert.deepEqual(
      second.map(({ outcome }) => outcome),
      ['recorded', 'duplicate'],
    );
    assert.equal(second[1]?.id, first[0]?.id);
  });

  it('the second records what the first did not commit', async () => {
    const { second } = await race('rollback', [{ hash: 'h1' }], [{ hash: 'h1' }]);
    assert.equal(second[0]?.outcome, 'recorded');
  });

  it('an event signed twice, with both on their way, is recorded once', async () => {
    const { second } = await race('commit', [{ event: 'e', hash: 'h1' }], [{ event: 'e', hash: 'h2' }]);
    assert.equal(second[0]?.outcome, 'duplicate');
  });

  /**
   * One session records the events 1, 2, 3, the other 3, 2, 1, each signed anew. Both have to pass event 2, which a third
   * session holds until both wait. If each takes the keys in the order given, each then holds what the other needs.
   */
  async function crossing(functionName: string, secondWaitsFor: 'holder' | 'first'): Promise<string[]> {
    const [observer, first, second, holder] = sessions;
    await holder.rows('begin');
    await record(holder, [{ event: '2', hash: 'held' }]);
    const signed = (by: string) => (event: string) => ({ event, hash: `${by}${event}` });
    const outcomes = async (session: Session, calls: Sent[]) => {
      try {
        return (await record(session, calls, functionName)).map(({ outcome }) => outcome).join(' ');
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    const one = outcomes(first, ['1', '2', '3'].map(signed('a')));
    await waitsFor(observer, first, holder);
    const other = outcomes(second, ['3', '2', '1'].map(signed('b')));
    await waitsFor(observer, second, secondWaitsFor === 'holder' ? holder : first);
    await holder.rows('rollback');
    return Promise.all([one, other]);
  }

  it('batches with the same events in opposite orders do not deadlock', async () => {
    assert.deepEqual(await crossing('calls.record_calls', 'first'), [
      'recorded recorded recorded',
      'duplicate duplicate duplicate',
    ]);
  });

  it('they do without the order of the keys: that is what holds', async () => {
    const definition = await sessions[0].value<string>(
      `select pg_get_functiondef('calls.record_calls'::regproc)`,
    );
    const unordered = definition
      .replace('calls.record_calls', 'calls.record_unordered')
      .replaceAll('order by i.site_id, i.event_id, i.signature_hash', '');
    await sessions[0].rows(unordered);
    const ended = await crossing('calls.record_unordered', 'holder');
    assert.deepEqual(ended.filter((outcome) => outcome === '40P01').length, 1, ended.join());
  });

  it('duplicates are looked up by their keys, also in a table that grew after the plan was made', async () => {
    const [observer, session] = sessions;
    const seen = [{ event: 'e', hash: 'h' }, { hash: 'h0' }];
    for (let time = 0; time < 10; time++) await record(session, seen);
    await observer.rows(
      `insert into public.calls (site_id, event_id, signature_hash)
       select 's', 'x' || i, 'x' || i from generate_series(1, 50000) i`,
    );
    const scanned = async () => {
      await session.rows('select pg_stat_force_next_flush()');
      await session.rows('select 1');
      const [row] = await observer.rows<{ seq_tup_read: string }>(
        `select seq_tup_read from pg_stat_user_tables where relname = 'calls'`,
      );
      return Number(row?.seq_tup_read);
    };
    const before = await scanned();
    for (let time = 0; time < 10; time++) {
      const again = await record(session, [...seen, { event: 'e', hash: `new${time}` }]);
      assert.deepEqual(
        again.map(({ outcome }) => outcome),
        ['duplicate', 'duplicate', 'duplicate'],
      );
    }
    assert.equal(await scanned(), before);
    await session.rows('select count(payload) from public.calls');
    assert.ok((await scanned()) > before, 'a scan of the table would have been seen');
  });
});
