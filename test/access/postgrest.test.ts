// Who may do what, asked through the real PostgREST, on projects that began with old and with new default rights.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { startTestPostgrest, type TestPostgrest } from '../support/postgrest.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { CLAIM, FUNCTIONS, OWNERS_ONLY, RELEASE, type Side, TABLES } from './offered.ts';
import {
  ALL_VERBS,
  assertRefused,
  callFunction,
  callRest,
  everythingExposed,
  isRefused,
  tryTable,
} from './rest.ts';

const UUID = /^[0-9a-f-]{36}$/;

for (const defaults of ['old', 'new'] as const) {
  describe(`through PostgREST, on projects with the ${defaults} default rights`, () => {
    let databases: TestDatabases;
    const rest = {} as Record<Side, TestPostgrest>;
    const session = {} as Record<Side, Session>;

    before(async () => {
      databases = await startDatabases({ defaults });
      for (const side of ['db1', 'db2'] as const) {
        session[side] = await openSession(databases[side].url);
        rest[side] = await startTestPostgrest(databases[side]);
      }
      await putOnSale(session.db1.client, 'open', 100);
      await putOnSale(session.db1.client, 'members', 100, { require_auth: true });
    });
    after(async () => {
      for (const side of ['db1', 'db2'] as const) {
        await rest[side]?.stop();
        await session[side]?.close();
      }
      await databases?.stop();
    });

    const tokenOf = async (side: Side, role: string) =>
      role === 'anon' ? undefined : rest[side].token(role, randomUUID());
    const claim = (body: Record<string, string>, token?: string) =>
      callRest(rest.db1, { method: 'POST', path: `rpc/${CLAIM}`, body, token });
    const release = (body: Record<string, unknown>, token?: string) =>
      callRest(rest.db1, { method: 'POST', path: `rpc/${RELEASE}`, body, token });
    const claimIdOf = (user: string) =>
      session.db1.value<string>('select claim_id from public.claims where user_id = $1', [user]);

    for (const side of ['db1', 'db2'] as const) {
      for (const role of ['anon', 'authenticated', 'service_role']) {
        test(`${role} may call exactly the listed functions of ${side}`, async () => {
          const { functions } = await everythingExposed(databases[side]);
          assert(functions.length > 0);
          const token = await tokenOf(side, role);
          const allowed: string[] = [];
          for (const callable of functions) {
            const answer = await callFunction(rest[side], callable, token);
            if (isRefused(answer)) assertRefused(answer, callable.name);
            else allowed.push(callable.name);
          }
          assert.deepEqual(allowed.toSorted(), FUNCTIONS[side][role]?.toSorted());
        });

        test(`${role} may do exactly the listed things to the tables of ${side}`, async () => {
          const { tables } = await everythingExposed(databases[side]);
          assert(tables.length > 0);
          const token = await tokenOf(side, role);
          for (const table of tables) {
            for (const verb of ALL_VERBS) {
              const answer = await tryTable(rest[side], table, verb, token);
              const what = `${verb} on ${table.name}`;
              if (TABLES[side][role]?.[table.name]?.includes(verb))
                assert(!isRefused(answer), `${what}: ${JSON.stringify(answer.body)}`);
              else assertRefused(answer, what);
            }
          }
        });
      }

      test(`no function of ${side} is offered that the lists do not name`, async () => {
        const { functions } = await everythingExposed(databases[side]);
        const names = functions.map(({ name }) => name).toSorted();
        assert.deepEqual(names, [...(FUNCTIONS[side].service_role ?? []), ...OWNERS_ONLY[side]].toSorted());
      });

      test(`no inner schema of ${side} can be reached, with any role`, async () => {
        for (const schema of ['intake', 'audit', 'pgmq', 'cron', 'net', 'auth', 'pg_catalog']) {
          for (const role of ['anon', 'service_role']) {
            const answer = await callRest(rest[side], {
              path: 'claims',
              token: await tokenOf(side, role),
              headers: { 'accept-profile': schema },
            });
            assert.deepEqual([schema, answer.status, answer.code], [schema, 406, 'PGRST106']);
          }
        }
      });
    }

    test('anon claims where the pool allows it', async () => {
      const answer = await claim({ p_pool_id: 'open', p_user_id: 'passer-by' });
      assert.equal(answer.status, 200);
      assert.match(String(answer.body), UUID);
    });

    test('anon is told to sign in where the pool asks for it', async () => {
      const answer = await claim({ p_pool_id: 'members', p_user_id: 'passer-by' });
      assert.deepEqual([answer.status, answer.code], [400, 'SL005']);
    });

    test('a signed-in user claims for itself, and for no other user', async () => {
      const user = randomUUID();
      const token = await rest.db1.token('authenticated', user);
      for (const pool of ['open', 'members'])
        assert.match(String((await claim({ p_pool_id: pool, p_user_id: user }, token)).body), UUID);
      for (const pool of ['open', 'members'])
        assert.equal((await claim({ p_pool_id: pool, p_user_id: randomUUID() }, token)).code, 'SL006');
      const claims = 'select count(*)::int from public.claims where user_id = $1';
      assert.equal(await session.db1.value(claims, [user]), 2);
    });

    test('a signed-in user without an id cannot claim', async () => {
      const token = await rest.db1.token('authenticated');
      assert.equal((await claim({ p_pool_id: 'open', p_user_id: 'ann' }, token)).code, 'SL006');
    });

    test('a forged token is refused', async () => {
      const token = await rest.db1.token('service_role');
      const answer = await claim({ p_pool_id: 'open', p_user_id: 'u' }, `${token.slice(0, -4)}AAAA`);
      assert.equal(answer.status, 401);
    });

    test('a signed-in user releases its own claim, and not another user’s', async () => {
      const owner = randomUUID();
      const other = randomUUID();
      const ownerToken = await rest.db1.token('authenticated', owner);
      const otherToken = await rest.db1.token('authenticated', other);
      await claim({ p_pool_id: 'open', p_user_id: owner }, ownerToken);
      const p_claim_id = await claimIdOf(owner);
      assertRefused(await release({ p_claim_id, p_user_id: owner }), 'anon');
      for (const p_user_id of [other, owner, null])
        assert.equal((await release({ p_claim_id, p_user_id }, otherToken)).code, 'SL006');
      // A buyer names the claim's user: PostgREST knows no call without one.
      assert.equal((await release({ p_claim_id }, ownerToken)).status, 404);
      const answer = await release({ p_claim_id, p_user_id: owner }, ownerToken);
      assert.equal(answer.status, 200);
      assert.equal((answer.body as { state: string }[])[0]?.state, 'released');
    });

    test('service_role claims and releases for any user, and puts slots on sale', async () => {
      const token = await rest.db1.token('service_role');
      const slots = [{ pool_id: 'open' }, { pool_id: 'open' }];
      assert.equal(
        (await callRest(rest.db1, { method: 'POST', path: 'inventory_slots', body: slots, token })).status,
        201,
      );
      assert.match(String((await claim({ p_pool_id: 'members', p_user_id: 'guest' }, token)).body), UUID);
      const answer = await release({ p_claim_id: await claimIdOf('guest'), p_user_id: 'guest' }, token);
      assert.equal((answer.body as { state: string }[])[0]?.state, 'released');
    });

    test('a user sees its own tickets and no others', async () => {
      const user = randomUUID();
      const service = await rest.db2.token('service_role');
      const tickets = [user, user, randomUUID()].map((user_id) => ({
        ...{ resource_id: randomUUID(), claim_id: randomUUID() },
        ...{ pool_id: 'open', user_id },
      }));
      const written = await callRest(rest.db2, {
        method: 'POST',
        path: 'rpc/finalize_batch',
        body: { p_payloads: tickets },
        token: service,
      });
      assert.equal(written.status, 200);
      const seenBy = async (token?: string) => {
        const { body } = await callRest(rest.db2, { path: 'confirmed_tickets?select=user_id', token });
        return (body as { user_id: string }[]).map((ticket) => ticket.user_id);
      };
      assert.deepEqual(await seenBy(await rest.db2.token('authenticated', user)), [user, user]);
      assert.deepEqual(await seenBy(await rest.db2.token('authenticated', randomUUID())), []);
      assert.equal((await seenBy(service)).length, tickets.length);
    });
  });
}
