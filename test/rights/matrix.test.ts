// The whole of what each role may do, against a golden file per database, on projects with the old and the new default rights.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { difference, rightsOf } from './matrix.ts';

const SIDES = ['db1', 'db2'] as const;
type Side = (typeof SIDES)[number];

const UPDATE = process.env.UPDATE_GOLDEN === '1';
const goldenFile = (side: Side) => fileURLToPath(new URL(`./${side}.matrix.txt`, import.meta.url));

/** Mistakes of a later migration, each with the line that it changes. */
const MISTAKES: Record<Side, [statement: string, line: RegExp][]> = {
  db1: [
    ['grant select on public.claims to anon', /^\+ r +- +r .*table public\.claims/m],
    ['grant usage on schema pgmq to authenticated', /^\+ - +U .*schema pgmq/m],
    [
      'grant execute on function intake.rebuild_inventory(text) to public',
      /^\+ \(X\) .*intake\.rebuild_inventory/m,
    ],
    ['grant select (user_id) on public.claims to authenticated', /^\+ column claims\.user_id/m],
    [
      'alter table public.claims disable row level security',
      /^- .*table public\.claims {2}\[row security\]/m,
    ],
    ['alter function public.bridge_wake() security definer', /^\+ .*bridge_wake\(\) {2}\[definer\]/m],
    [
      'create function public.extra() returns int language sql as $$ select 1 $$',
      /^\+ .*function public\.extra\(\)/m,
    ],
    ['create table net.extra (x int)', /^\+ .*table net\.extra/m],
    [
      'create role auditor; grant select on audit.audit_logs to auditor',
      /^\+ beside the matrix auditor select audit/m,
    ],
    ['alter role authenticated bypassrls', /^\+ role authenticated bypassrls/m],
    ['grant service_role to authenticated', /^\+ member authenticated of service_role/m],
    ['alter default privileges in schema intake grant select on tables to anon', /^\+ default r in intake/m],
    [`alter role anon set statement_timeout = '1h'`, /^\+ setting anon statement_timeout=1h/m],
    [
      'grant select on public.claims to service_role with grant option',
      /^\+ grantable service_role select public\.claims/m,
    ],
  ],
  db2: [
    ['grant insert on public.credit_ledger to authenticated', /^\+ - +a +r .*table public\.credit_ledger/m],
    ['drop policy own_tickets on public.confirmed_tickets', /^- policy confirmed_tickets own_tickets/m],
    [
      'alter policy own_tickets on public.confirmed_tickets using (true)',
      /^\+ policy confirmed_tickets .* using true/m,
    ],
    ['grant usage on schema webhook to anon', /^\+ U .*schema webhook/m],
    [
      'revoke execute on procedure webhook.work(int) from service_role',
      /^\+ - +- +- +- +- +procedure webhook\.work\(integer\)/m,
    ],
  ],
};

for (const defaults of ['new', 'old'] as const) {
  describe(`the rights of a project with the ${defaults} default rights`, () => {
    let databases: TestDatabases;
    const session = {} as Record<Side, Session>;

    before(async () => {
      databases = await startDatabases({ defaults });
      for (const side of SIDES) session[side] = await openSession(databases[side].url);
    });
    after(async () => {
      for (const side of SIDES) await session[side]?.close();
      await databases?.stop();
    });

    for (const side of SIDES) {
      test(`${side} grants what its golden file says, and no more`, async () => {
        const actual = await rightsOf(session[side]);
        if (UPDATE && defaults === 'new') writeFileSync(goldenFile(side), actual);
        const golden = existsSync(goldenFile(side)) ? readFileSync(goldenFile(side), 'utf8') : '';
        const changed = difference(golden, actual);
        assert(
          changed === '',
          `test/rights/${side}.matrix.txt says otherwise (UPDATE_GOLDEN=1 rewrites it):\n${changed}`,
        );
        assert.equal(actual, golden, 'the same lines, in the same order');
      });

      if (defaults === 'old') continue;
      for (const [statement, line] of MISTAKES[side]) {
        test(`it would notice on ${side}: ${statement}`, async () => {
          const right = await rightsOf(session[side]);
          await session[side].client.query('begin');
          try {
            await session[side].client.query(statement);
            assert.match(difference(right, await rightsOf(session[side])), line);
          } finally {
            await session[side].client.query('rollback');
          }
          assert.equal(await rightsOf(session[side]), right, 'and nothing of it is left');
        });
      }
    }
  });
}
