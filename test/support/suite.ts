// What most suites about the intake begin with.

import { after, afterEach, before } from 'node:test';
import { startDatabases, type TestDatabases } from './databases.ts';
import { closeAll, openSessions, type Session } from './sessions.ts';

/**
 * DB1 and one session for each name, opened before the tests of a suite and closed after them. A session can be named before it
 * is open. After each test what it left open is rolled back: a test that failed half-way must not leave its locks to the next.
 */
export function useIntake<const Name extends string>(
  ...names: readonly Name[]
): Readonly<Record<Name, Session>> & { url(): string } {
  let databases: TestDatabases | undefined;
  let open: Session[] = [];
  before(async () => {
    databases = await startDatabases({ db2: false });
    open = await openSessions(databases.db1.url, names.length);
  });
  afterEach(async () => {
    await Promise.all(open.map((session) => session.client.query('rollback')));
  });
  after(async () => {
    await closeAll(open);
    await databases?.stop();
  });
  const sessions = names.map((name, at) => [
    name,
    new Proxy({} as Session, { get: (_, property) => Reflect.get(open[at] as Session, property) }),
  ]);
  return { ...Object.fromEntries(sessions), url: () => databases?.db1.url ?? '' };
}
