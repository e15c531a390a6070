// Who may call the functions of webhooks and calls, asked through the real PostgREST, which shows their schemas.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { findPostgrest, startPostgrest } from '../../src/stack/postgrest.ts';
import { cleanUpOnExit, startDatabases, type TestDatabases } from '../support/databases.ts';
import { startTestPostgrest, TEST_JWT_SECRET, type TestPostgrest } from '../support/postgrest.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { assertRefused, type Callable, callRest, isRefused } from './rest.ts';

/** The functions that service_role may call. Other roles may call none, and a function not listed is refused to all. */
const FUNCTIONS: Record<string, string[]> = {
  webhook: [
    'add_endpoint',
    'apply_fetched',
    'balance',
    'begin_backfill',
    'begin_comparison',
    'doors',
    'find_payments',
    'find_transactions',
    'known_events',
    'begin_typescript_event',
    'change_endpoint',
    'claim_next_event',
    'count_payments_without_user',
    'event_lanes',
    'event_links',
    'extend_leases',
    'find_endpoint',
    'find_reply',
    'find_secret',
    'finish_event',
    'hold_event',
    'list_endpoints',
    'list_events',
    'list_handler_faults',
    'list_handlers',
    'list_secret_names',
    'mark_event_result',
    'metrics',
    'missing_handlers',
    'name_payment_user',
    'payments_without_user',
    'process_event',
    'process_events',
    'prune_payloads',
    'record_events',
    'register_handlers',
    'remove_handler',
    'replay_events',
    'replay_totals',
    'reply_event',
    'rotate_endpoint',
    'show_event',
    'skip_events',
    'take_events',
    'take_suspect',
    'wake_workers',
  ],
  calls: [
    'add_site',
    'change_site',
    'find_site',
    'list_calls',
    'list_sites',
    'record_calls',
    'rotate_site',
    'show_call',
  ],
};

describe('the schemas of webhooks and calls through PostgREST', () => {
  let databases: TestDatabases;
  let session: Session;
  let tokens: TestPostgrest;
  let rest: TestPostgrest;
  let forget: (() => void) | undefined;
  const logs = mkdtempSync(join(tmpdir(), 'sluice-schemas-'));

  before(async () => {
    databases = await startDatabases({ db1: false, defaults: 'old' });
    session = await openSession(databases.db2.url);
    tokens = await startTestPostgrest(databases.db2);
    const binary = findPostgrest();
    assert(binary, 'no PostgREST here: set POSTGREST_BIN');
    const wide = await startPostgrest({
      binary,
      databaseUrl: databases.db2.authenticatorUrl,
      jwtSecret: TEST_JWT_SECRET,
      schemas: ['public', ...Object.keys(FUNCTIONS)],
      logFile: join(logs, 'postgrest.log'),
      onSpawn: (pid) => {
        forget = cleanUpOnExit(() => process.kill(pid, 'SIGKILL'));
      },
    });
    rest = { ...tokens, url: wide.url, stop: () => wide.stop() };
  });
  after(async () => {
    forget?.();
    await rest?.stop();
    await tokens?.stop();
    await session?.close();
    await databases?.stop();
    rmSync(logs, { recursive: true, force: true });
  });

  const functionsOf = (schema: string) =>
    session.rows<Callable>(
      `select p.proname as name, coalesce((
         select array_agg(a.name order by a.place)
         from unnest(p.proargnames) with ordinality a (name, place)
         where coalesce(p.proargmodes[a.place], 'i') in ('i', 'b')
       ), '{}') as argument_names
       from pg_proc p
       where p.pronamespace = $1::regnamespace and p.prorettype <> 'trigger'::regtype`,
      [schema],
    );

  for (const [schema, listed] of Object.entries(FUNCTIONS)) {
    for (const role of ['anon', 'authenticated', 'service_role']) {
      test(`${role} may call exactly the listed functions of ${schema}`, async () => {
        const token = role === 'anon' ? undefined : await rest.token(role, randomUUID());
        const allowed: string[] = [];
        for (const { name, argument_names } of await functionsOf(schema)) {
          const answer = await callRest(rest, {
            method: 'POST',
            path: `rpc/${name}`,
            body: Object.fromEntries(argument_names.map((argument) => [argument, null])),
            token,
            headers: { 'content-profile': schema },
          });
          if (isRefused(answer)) assertRefused(answer, name);
          else allowed.push(name);
        }
        assert.deepEqual(allowed.toSorted(), role === 'service_role' ? listed.toSorted() : []);
      });
    }
  }

  test('the configuration for Supabase shows these schemas and no others', () => {
    const config = readFileSync(new URL('../../db2/supabase/config.toml', import.meta.url), 'utf8');
    assert.match(config, /^schemas = \["public", "webhook", "calls"\]$/m);
  });
});
