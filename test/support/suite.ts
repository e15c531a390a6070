// What most suites about one of the databases begin with.

import { after, afterEach, before } from 'node:test';
import { type DatabasesOptions, startDatabases, type TestDatabases } from './databases.ts';
import { closeAll, openSessions, type Session } from './sessions.ts';

type Opened<Name extends string> = Readonly<Record<Name, Session>> & { url(): string };

/**
 * DB1 and one session for each name, opened before the tests of a suite and closed after them. A session can be named before it
 * is open. After each test what it left open is rolled back: a test that failed half-way must not leave its locks to the next.
 */
export function useIntake<const Name extends string>(...names: readonly Name[]): Opened<Name> {
  return useDatabase('db1', names);
}

/** The same with DB2. */
export function useLedger<const Name extends string>(...names: readonly Name[]): Opened<Name> {
  return useDatabase('db2', names);
}

export function useDatabase<const Name extends string>(
  side: 'db1' | 'db2',
  names: readonly Name[],
  options: DatabasesOptions = {},
): Opened<Name> {
  let databases: TestDatabases | undefined;
  let open: Session[] = [];
  before(async () => {
    databases = await startDatabases({ ...options, [side === 'db1' ? 'db2' : 'db1']: false });
    open = await openSessions(databases[side].url, names.length);
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
  return { ...Object.fromEntries(sessions), url: () => databases?.[side].url ?? '' };
}
