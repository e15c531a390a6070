// Two real sessions rotate the secrets of one sender at once: a name that is lost is a sender whose deliveries are refused.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { closeAll, interleave, openSessions, type Session } from '../support/sessions.ts';
import { allowSecrets } from './world.ts';

interface Sender {
  readonly name: string;
  readonly add: string;
  readonly rotate: string;
  /** As it would be without a lock: what was read before, written back with one more. */
  readonly change: string;
  readonly read: string;
}

const SENDERS: readonly Sender[] = [
  {
    name: 'an endpoint',
    add: `select webhook.add_endpoint('one', 'stripe', '{A}', p_actor => 'test')`,
    rotate: `select secret_names from webhook.rotate_endpoint('one', array[$1], false, 'test')`,
    change: `select secret_names from webhook.change_endpoint('one', jsonb_build_object('secret_names', $1::text[]), 'test')`,
    read: `select secret_names from public.webhook_endpoints where name = 'one'`,
  },
  {
    name: 'a call site',
    add: `select calls.add_site('one', '{A}', true, null, 'test')`,
    rotate: `select secret_names from calls.rotate_site('one', array[$1], false, 'test')`,
    change: `select secret_names from calls.change_site('one', jsonb_build_object('secret_names', $1::text[]), 'test')`,
    read: `select secret_names from public.call_sites where site_id = 'one'`,
  },
];

describe('two rotations at once', () => {
  let databases: TestDatabases;
  let sessions: Session[];
  before(async () => {
    databases = await startDatabases({ db1: false });
    sessions = await openSessions(databases.db2.url, 3);
    await allowSecrets(sessions[0]?.client as Session['client'], [...'ABCDE']);
  });
  after(async () => {
    await closeAll(sessions ?? []);
    await databases?.stop();
  });

  for (const { name, add, rotate, change, read } of SENDERS)
    it(`of ${name} both count, where two that write back what they read lose one`, async () => {
      const [first, second, observer] = sessions as [Session, Session, Session];
      await observer.value(add);
      const both = await interleave(
        observer,
        { session: first, run: () => first.value(rotate, ['B']), end: 'commit' },
        { session: second, run: () => second.value(rotate, ['C']) },
      );
      assert.deepEqual(both, { first: ['B', 'A'], second: ['C', 'B', 'A'] });

      const known = await observer.value<string[]>(read);
      await interleave(
        observer,
        { session: first, run: () => first.value(change, [['D', ...known]]), end: 'commit' },
        { session: second, run: () => second.value(change, [['E', ...known]]) },
      );
      assert.deepEqual(await observer.value(read), ['E', 'C', 'B', 'A'], 'the control has lost D');
    });
});
