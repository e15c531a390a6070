// An alert is told by one server at a time: two real sessions take it, in each database, with and without the lease.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { closeAll, interleave, openSessions, type Session } from '../support/sessions.ts';

interface Taken {
  readonly id: string;
  readonly token: string;
}

const LEASE_SEC = 60;
/** A session that waits for another one's lock would take what that one took. */
const PATIENCE = '1s';
const FIXED_TOKEN = '00000000-0000-4000-8000-000000000000';

const take = (session: Session): Promise<Taken[]> =>
  session.rows<Taken>('select id, token from public.take_alerts(4, $1)', [LEASE_SEC]);
const finish = (session: Session, { id, token }: Taken): Promise<boolean> =>
  session.value<boolean>('select public.finish_alert($1, $2, true)', [id, token]);

describe('the lease of an alert', () => {
  let databases: TestDatabases;
  before(async () => {
    databases = await startDatabases();
  });
  after(() => databases?.stop());

  for (const side of ['db1', 'db2'] as const)
    describe(`in ${side}`, () => {
      let sessions: Session[];
      let first: Session;
      let second: Session;
      let observer: Session;
      let original: string;
      before(async () => {
        sessions = await openSessions(databases[side].url, 3);
        [first, second, observer] = sessions as [Session, Session, Session];
        original = await observer.value<string>(`select pg_get_functiondef('public.take_alerts'::regproc)`);
      });
      after(() => closeAll(sessions ?? []));

      async function begin(): Promise<void> {
        await observer.client.query('delete from audit.alerts');
        await observer.client.query('delete from audit.marks');
        await observer.client.query(
          `insert into audit.marks (kind, subject, began_at, seen_at) values ('alert', 'a message waits', now(), now())`,
        );
      }

      /** No server has taken it before: the second one waits until the first has noted it. */
      async function newAlert(): Promise<void> {
        await begin();
        const taken = await interleave(
          observer,
          { session: first, run: () => take(first), end: 'commit' },
          { session: second, run: () => take(second) },
        );
        assert.equal(taken.first.length, 1);
        assert.deepEqual(taken.second, [], 'a second server tells it too');
      }

      /** Due again after a failure: the first has it and has not committed yet, then it has. */
      async function dueAgain(): Promise<void> {
        await begin();
        const [once] = await take(first);
        assert(once !== undefined);
        await observer.client.query('update audit.alerts set next_attempt_at = now()');
        await first.client.query('begin');
        try {
          const again = await take(first);
          assert.equal(again.length, 1);
          await second.client.query(`set lock_timeout = '${PATIENCE}'`);
          assert.deepEqual(await take(second), [], 'a second server tells it meanwhile');
        } finally {
          await first.client.query('commit');
          await second.client.query('reset lock_timeout');
        }
        assert.deepEqual(await take(second), [], 'a second server tells it afterwards');
      }

      /** A server that stalls: the lease is over, another one tells it, and the late finish is not taken. */
      async function takenOver(): Promise<void> {
        await begin();
        const [stalled] = await take(first);
        await observer.client.query('update audit.alerts set next_attempt_at = now()');
        const [taken] = await take(second);
        assert(stalled !== undefined && taken !== undefined);
        assert.equal(stalled.id, taken.id);
        assert.equal(await finish(first, stalled), false, 'who lost the lease finishes nothing');
        assert.equal(await finish(second, taken), true);
        assert.deepEqual(await take(first), []);
      }

      /** Runs `work` with take_alerts as it would be without a part of it. */
      async function without(part: string, instead: string, work: () => Promise<void>): Promise<void> {
        assert(original.includes(part), `take_alerts has no ${part}`);
        await observer.client.query(original.replace(part, instead));
        try {
          await work();
        } finally {
          await observer.client.query(original);
        }
      }

      it('keeps a second server from what the first one tells, also while neither has committed', async () => {
        await newAlert();
        await dueAgain();
      });

      it('goes to another server when it is over, and the first one finishes nothing', takenOver);

      it('is what keeps it: without the time of the lease both tell it', () =>
        without('+ make_interval(secs => p_lease_sec)', '', async () => {
          await assert.rejects(newAlert(), /a second server tells it too/);
          await assert.rejects(dueAgain(), /a second server tells it (meanwhile|afterwards)/);
        }));

      it('is what keeps it: without the lock the second one waits for what the first one tells', () =>
        without('for update skip locked', '', () => assert.rejects(dueAgain(), /lock timeout/)));

      it('is what keeps it: without a new token a late finish is taken', () =>
        without('set token = gen_random_uuid()', `set token = '${FIXED_TOKEN}'`, () =>
          assert.rejects(takenOver(), /who lost the lease finishes nothing/),
        ));
    });
});
