// Who may do what, asked through the real PostgREST, on projects that began with old and with new default rights.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { startTestPostgrest, type TestPostgrest } from '../support/postgrest.ts';
import { openSession, type Session } from '../support/sessions.ts';
import {
  ALL_VERBS,
  assertRefused,
  callFunction,
  callRest,
  everythingExposed,
  isRefused,
  tryTable,
  type Verb,
} from './rest.ts';

const CLAIM = 'claim_resource_and_queue';
const RELEASE = 'release_own_claim';
const UUID = /^[0-9a-f-]{36}$/;

type Side = 'db1' | 'db2';

/** No role of an API may call these. */
const OWNERS_ONLY: Record<Side, string[]> = {
  db1: ['allow_hook_host', 'disallow_hook_host', 'set_retention'],
  db2: ['place_claims', 'set_retention'],
};

/** Functions that a role may call; for service_role that is every other one, so a new one must be listed here. */
const FUNCTIONS: Record<Side, Record<string, string[]>> = {
  db1: {
    anon: [CLAIM],
    authenticated: [CLAIM, RELEASE],
    service_role: [
      'bridge_config',
      'bridge_extend',
      'bridge_first_claims',
      'bridge_finish',
      'bridge_lanes',
      'bridge_take',
      'bridge_take_suspect',
      'bridge_wake',
      'copied_door',
      'copied_secret',
      'copy_doors',
      'inbox_accept',
      'inbox_discard',
      'inbox_extend',
      'inbox_finish',
      'inbox_lanes',
      'inbox_list',
      'inbox_replay',
      'inbox_take',
      'inbox_take_suspect',
      'cell_directory',
      'cell_drain',
      'cell_here',
      'cell_join',
      'cell_learn',
      'pool_pack',
      'pool_parcels',
      'pool_receive',
      'pool_sent',
      'pool_unpack',
      'pool_details',
      'set_pool_details',
      'begin_checkout',
      'checkout_created',
      'take_closing',
      'close_checkout',
      'checkout_later',
      'settle_payment',
      'void_targets',
      'finish_void',
      'order_details',
      'claim_batch',
      CLAIM,
      'discard_dead_letters',
      'list_dead_letters',
      'replay_dead_letters',
      'expire_holds',
      'take_ends',
      'finish_ends',
      'get_claim',
      'intake_queue_delete',
      'intake_queue_read',
      'intake_queue_send',
      'intake_route_to_dlq',
      'pool_status',
      'reap_orphaned_slots',
      'reconcile_claims',
      'reconcile_fix',
      'reconcile_messages',
      'reconcile_total',
      RELEASE,
      'intake_ready',
      'answer_in_cell',
      'snapshot_engine_metrics',
      'live_sample',
      'pool_list',
      'pool_create',
      'pool_change',
      'claim_search',
      'claim_timeline',
      'release_claim_as_operator',
      'audit_page',
      'search_intake',
      'claim_total',
      'order_total',
      'dead_letter_total',
      'audit_total',
      'user_audit',
      'intake_health',
      'session_end',
      'sessions_ended',
      'known_operators',
      'operator_used',
      'seal_audit',
      'decided_payments',
      'find_checkouts',
      'order_audit',
      'order_list',
      'paid_pools',
      'seat_details',
      'begin_erasure',
      'erase_step',
      'finish_erasure',
      'personal_places',
      'export_user',
      'note_export',
      'prune_step',
      'retention_rules',
      'open_claims_of',
      'erase_claims',
      'hook_allowed_hosts',
    ],
  },
  db2: {
    anon: [],
    authenticated: ['my_tickets', 'answer_in_cell'],
    service_role: [
      'finalize_batch',
      'finalize_transaction',
      'ledger_ready',
      'answer_in_cell',
      'my_tickets',
      'tickets_of',
      'void_tickets',
      'write_tickets',
      'refuse_isolation',
      'tickets_page',
      'webhook_sample',
      'ledger_sample',
      'ticket_of_claim',
      'audit_page',
      'search_ledger',
      'ticket_list',
      'ticket_total',
      'payment_list',
      'payment_total',
      'credit_list',
      'credit_total',
      'event_total',
      'call_total',
      'refund_total',
      'audit_total',
      'payment_details',
      'user_audit',
      'ledger_health',
      'copy_operators',
      'known_operators',
      'seal_audit',
      'get_refund',
      'order_audit',
      'order_of_payment',
      'outbox_take',
      'outbox_finish',
      'outbox_finish_all',
      'outbox_later',
      'void_order_tickets',
      'request_void',
      'record_pulled',
      'refunds_take',
      'refund_sent',
      'refund_failed',
      'decide_refunds',
      'list_refunds',
      'order_refunds',
      'check_ticket',
      'ticket_details',
      'ledger_order_details',
      'ledger_order_metrics',
      'voided_claims',
      'settled_payments',
      'resettle_payments',
      'begin_erasure',
      'erase_step',
      'finish_erasure',
      'personal_places',
      'export_user',
      'note_export',
      'prune_step',
      'retention_rules',
      'erase_tickets',
      'users_now',
    ],
  },
};

/** What a role may do to which table; nothing where none is named. */
const TABLES: Record<Side, Record<string, Record<string, Verb[]>>> = {
  db1: {
    service_role: {
      claims: ['select'],
      engine_config: ALL_VERBS,
      engine_metrics: ['select'],
      inventory_slots: ALL_VERBS,
      slot_manifest: ['select'],
    },
  },
  db2: {
    authenticated: { confirmed_tickets: ['select'], voided_tickets: ['select'] },
    service_role: {
      call_sites: ['select'],
      calls: ['select'],
      confirmed_tickets: ['select', 'insert'],
      credit_ledger: ['select'],
      claim_outbox: ['select'],
      refunds_due: ['select'],
      ticket_uses: ['select'],
      payment_refunds: ['select'],
      payment_rules: ['select'],
      payment_transactions: ['select'],
      payments: ['select'],
      voided_tickets: ['select'],
      erased_claims: ['select'],
      webhook_alarms: ['select'],
      webhook_bodies: ['select'],
      webhook_endpoints: ['select'],
      webhook_events: ['select'],
      webhook_handlers: ['select'],
      webhook_side_effects: ['select'],
    },
  },
};

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

      test(`no inner schema of ${side} can be reached, whoever asks`, async () => {
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

    test('a signed-in user claims for itself, and for nobody else', async () => {
      const user = randomUUID();
      const token = await rest.db1.token('authenticated', user);
      for (const pool of ['open', 'members'])
        assert.match(String((await claim({ p_pool_id: pool, p_user_id: user }, token)).body), UUID);
      for (const pool of ['open', 'members'])
        assert.equal((await claim({ p_pool_id: pool, p_user_id: randomUUID() }, token)).code, 'SL006');
      const claims = 'select count(*)::int from public.claims where user_id = $1';
      assert.equal(await session.db1.value(claims, [user]), 2);
    });

    test('a signed-in user without an id claims for nobody', async () => {
      const token = await rest.db1.token('authenticated');
      assert.equal((await claim({ p_pool_id: 'open', p_user_id: 'anybody' }, token)).code, 'SL006');
    });

    test('a forged token is no token', async () => {
      const token = await rest.db1.token('service_role');
      const answer = await claim({ p_pool_id: 'open', p_user_id: 'u' }, `${token.slice(0, -4)}AAAA`);
      assert.equal(answer.status, 401);
    });

    test('a signed-in user releases its own claim, and nobody else’s', async () => {
      const owner = randomUUID();
      const other = randomUUID();
      const ownerToken = await rest.db1.token('authenticated', owner);
      const otherToken = await rest.db1.token('authenticated', other);
      await claim({ p_pool_id: 'open', p_user_id: owner }, ownerToken);
      const p_claim_id = await claimIdOf(owner);
      assertRefused(await release({ p_claim_id, p_user_id: owner }), 'anon');
      for (const p_user_id of [other, owner, null])
        assert.equal((await release({ p_claim_id, p_user_id }, otherToken)).code, 'SL006');
      // A buyer says whose claim it is: there is no such call without a user.
      assert.equal((await release({ p_claim_id }, ownerToken)).status, 404);
      const answer = await release({ p_claim_id, p_user_id: owner }, ownerToken);
      assert.equal(answer.status, 200);
      assert.equal((answer.body as { state: string }[])[0]?.state, 'released');
    });

    test('service_role claims and releases for anybody, and puts slots on sale', async () => {
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
