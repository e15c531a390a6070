import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { withClient } from '../../src/migrate/sql.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { startTestPostgrest, type TestPostgrest } from '../support/postgrest.ts';

describe('PostgREST on a database of the stack', () => {
  let databases: TestDatabases;
  let rest: TestPostgrest;

  before(async () => {
    databases = await startDatabases({ db1: false });
    await withClient(databases.db2.url, (client) =>
      client.query(
        `create function public.whoami() returns json language sql set search_path = '' as
           $$ select json_build_object('role', current_user, 'uid', auth.uid()) $$;
         revoke execute on function public.whoami() from public;
         grant execute on function public.whoami() to anon, authenticated`,
      ),
    );
    rest = await startTestPostgrest(databases.db2);
  });
  after(async () => {
    await rest.stop();
    await databases.stop();
  });

  const whoami = async (token?: string) => {
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    return fetch(`${rest.url}/rpc/whoami`, { method: 'POST', headers });
  };

  test('a caller without a token is anon', async () => {
    assert.deepEqual(await (await whoami()).json(), { role: 'anon', uid: null });
  });

  test('a signed-in caller is authenticated and has an id', async () => {
    const uid = '0b2d9a0e-9f35-4f5c-8f6e-7f9b6f1f2d11';
    const answer = await whoami(await rest.token('authenticated', uid));
    assert.deepEqual(await answer.json(), { role: 'authenticated', uid });
  });

  test('a role that was granted nothing is refused, a forged token too', async () => {
    assert.equal((await whoami(await rest.token('service_role'))).status, 403);
    const token = await rest.token('authenticated');
    assert.equal((await whoami(`${token.slice(0, -4)}AAAA`)).status, 401);
  });
});
