// What adopted tables brought along: columns of the application, which its own writers fill before and after the adoption.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { runHere } from '../cli/support.ts';
import { openClient } from '../server/support.ts';
import {
  deleteDuplicates,
  fillAsRequired,
  nameCreditedPayments,
  OwnPair,
  SERVERS,
  type Server,
} from '../stack/adopt_support.ts';
import { rowsWith } from './personal_tables.ts';

/** As Supabase names users. */
const PATIENT = '6f1c2e1a-8d0b-4c57-9a3e-2b7f00c0ffee';
const OTHER = '11111111-2222-4333-8444-555555555555';

describe('columns that an adopted table brought along', () => {
  let server: Server;
  let db2: pg.Client;
  let env: Record<string, string>;
  let later: string;
  const dir = mkdtempSync(join(tmpdir(), 'sluice-adopted-'));
  before(async () => {
    const started = await SERVERS['Postgres 18']?.();
    assert(started !== undefined && typeof started !== 'string');
    server = started;
    const pair = await OwnPair.make(server, 'kept');
    await fillAsRequired(pair.db2, 12);
    await deleteDuplicates(pair.db2);
    await nameCreditedPayments(pair.db2);
    db2 = await openClient(pair.db2);
    await db2.query(`alter table calls add tags text[], add caller json, add photo bytea, add patient_ids uuid[];
      alter table credit_ledger add note text, add patient uuid; alter table webhook_events add user_id bigint`);
    await write(PATIENT);
    await pair.asSuperuser((client) => client.query(pair.migrate('--roles').stdout));
    const adopted = pair.migrate('--adopt');
    assert.equal(adopted.status, 0, adopted.stderr);
    env = { DB1_URL: pair.db1, DB2_URL: pair.db2, USER: 'root' };
    later = await write(PATIENT);
    await write(OTHER);
    await db2.query('select public.seal_audit(1000)');
  });
  after(async () => {
    await db2?.end();
    await server?.stop();
    rmSync(dir, { recursive: true });
  });

  /** As the application does, which knows its own columns only. Returns the id of the row of the log, once it has one of ours. */
  async function write(id: string): Promise<string> {
    await db2.query(
      `insert into calls (site_id, phone, tags, caller, photo, patient_ids)
       values ('clinic', $1, array['vip', $1], json_build_object('id', $1::text), convert_to('of ' || $1, 'UTF8'), array[$1::uuid])`,
      [id],
    );
    const { rows } = await db2.query(
      `insert into audit.audit_logs (table_name, operation, row_data, changed_by)
       values ('patients', 'update', jsonb_build_object('patient', $1::text, 'ward', 7), $1::uuid) returning id`,
      [id],
    );
    return rows[0].id;
  }

  const exported = async (id: string) => {
    const { code, stdout, stderr } = await runHere(['users', 'export', id], env);
    assert.equal(code, 0, stderr);
    const found: { place: string; rows: Record<string, unknown>[] }[] = JSON.parse(stdout).found;
    return (place: string) => found.filter((one) => one.place === place).flatMap((one) => one.rows);
  };

  it('are exported: rows that name the user there and nowhere else', async () => {
    const rowsOf = await exported(PATIENT);
    assert.deepEqual(
      rowsOf('public.calls').map(({ phone }) => phone),
      [PATIENT, PATIENT],
    );
    const changes = rowsOf('audit.audit_logs').filter(({ table_name }) => table_name === 'patients');
    assert.deepEqual(
      changes.map(({ changed_by, row_data }) => [changed_by, row_data]),
      [1, 2].map(() => [PATIENT, { patient: PATIENT, ward: 7 }]),
    );
  });

  it('are covered by the seal of their row', async () => {
    assert.equal((await runHere(['audit', 'check'], env)).code, 0);
    // The owner can: with the setting, or without the trigger. The chain finds it.
    await db2.query(`begin; set local sluice.audit_exception = 'erase';
      update audit.audit_logs set row_data = '{"ward": 8}' where id = ${later}`);
    await db2.query('commit');
    const checked = await runHere(['audit', 'check'], env);
    assert.equal(checked.code, 1);
    assert.match(checked.stdout, new RegExp(`row ${later}: changed`));
    await db2.query(`begin; set local sluice.audit_exception = 'erase';
      update audit.audit_logs set row_data = '{"patient": "${PATIENT}", "ward": 7}' where id = ${later}`);
    await db2.query('commit');
    assert.equal((await runHere(['audit', 'check'], env)).code, 0);
  });

  it('are erased by their type, in sealed rows too, and the chain holds', async () => {
    // Of another user, with a note that names the one who goes.
    await db2.query(
      `insert into credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key, note, patient)
       values ('ann', 500, 'eur', 'payment', 'stripe', 'pi_note', 'evt_note', 'payment:pi_note:1', $1, $2)`,
      [`paid for ${PATIENT}, in cash`, PATIENT],
    );
    const erased = await runHere(['users', 'erase', PATIENT, '--yes', '--json'], env);
    assert.equal(erased.code, 0, erased.stderr);
    const { replacement, changed } = JSON.parse(erased.stdout);
    assert.equal(changed.db2['public.calls'], 2);
    assert.equal(changed.db2['public.credit_ledger'], 1);
    assert.deepEqual(await rowsWith(db2, PATIENT), {});
    const asUuid = replacement.slice('erased:'.length).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    const { rows: calls } = await db2.query(
      `select phone, tags, caller, photo, patient_ids from calls where phone = $1`,
      [replacement],
    );
    assert.deepEqual(
      calls,
      [1, 2].map(() => ({
        phone: replacement,
        tags: ['vip', replacement],
        caller: { id: replacement },
        photo: null,
        patient_ids: null,
      })),
    );
    const { rows: credits } = await db2.query(
      `select user_id, amount::int, note, patient from credit_ledger where object_id = 'pi_note'`,
    );
    assert.deepEqual(credits, [
      { user_id: 'ann', amount: 500, note: `paid for ${replacement}, in cash`, patient: asUuid },
    ]);
    const { rows } = await db2.query(`select changed_by, row_data from audit.audit_logs where id = $1`, [
      later,
    ]);
    assert.deepEqual(rows, [{ changed_by: asUuid, row_data: { patient: replacement, ward: 7 } }]);
    await db2.query('select public.seal_audit(1000)');
    const checked = await runHere(['audit', 'check'], env);
    assert.equal(checked.code, 0, checked.stdout);
    const { rows: told } = await db2.query(
      `select actor, details ->> 'replacement' as name from audit.audit_logs where action = 'log_erase' and subject = $1`,
      [`audit row ${later}`],
    );
    assert.deepEqual(told, [{ actor: 'owner (root)', name: replacement }]);
  });

  it('of other users stay', async () => {
    const rowsOf = await exported(OTHER);
    assert.equal(rowsOf('public.calls').length, 1);
    assert.equal(rowsOf('audit.audit_logs').length, 1 + 1, 'its row, and that of this export');
  });

  it('come along in an export, into a database that has them, and adopted rows stay before the chain', async () => {
    const file = join(dir, 'adopted.jsonl');
    const exported = await runHere(['export', file], env);
    assert.equal(exported.code, 0, exported.stderr);
    const copy = await OwnPair.make(server, 'copied');
    const migrated = copy.migrate();
    assert.equal(migrated.status, 0, migrated.stderr);
    const there = { DB1_URL: copy.db1, DB2_URL: copy.db2 };
    const refused = await runHere(['import', file], there);
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /has no column \w+ in \w+, [^\n]*\nhint: [^\n]*add it to the new database first/,
    );
    const COLUMNS = `select c.oid::regclass::text as name, a.attname as column, format_type(a.atttypid, a.atttypmod) as type
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.oid = any ('{webhook_events,webhook_side_effects,credit_ledger,calls,audit.audit_logs}'::regclass[]) order by 1, 2`;
    const client = await openClient(copy.db2);
    const { rows: known } = await client.query(COLUMNS);
    for (const { name, column, type } of (await db2.query(COLUMNS)).rows)
      if (!known.some((one) => one.name === name && one.column === column))
        await client.query(`alter table ${name} add "${column}" ${type}`);
    const imported = await runHere(['import', file], there);
    assert.equal(imported.code, 0, imported.stderr);
    await client.query('select public.seal_audit(1000)');
    const { rows } = await client.query(
      `select count(*) filter (where s.log_id <= c.begins_after)::int as adopted, count(s.log_id)::int > 0 as later,
         c.begins_after = (select max(id) from audit.audit_logs where table_name is not null and id <= c.begins_after) as is_where_it_was
       from audit.chain c left join audit.seals s on true group by c.begins_after`,
    );
    assert.deepEqual(rows, [{ adopted: 0, later: true, is_where_it_was: true }]);
    assert.equal((await runHere(['audit', 'check'], there)).code, 0);
    await client.end();
  });

  it('that are called user_id are compared as a whole, whatever their type', async () => {
    await db2.query(
      `insert into webhook_events (webhook_id, event_id, lane, payload, user_id)
       values ($1, 'evt_n', 0, '{"amount": 4242}', 4242), ($1, 'evt_m', 0, '{"user_id": 4242}', 7)`,
      [OTHER],
    );
    const erased = await runHere(['users', 'erase', '4242', '--yes', '--json'], env);
    assert.equal(erased.code, 0, erased.stderr);
    const { replacement } = JSON.parse(erased.stdout);
    const { rows } = await db2.query(
      `select payload, user_id from webhook_events where event_id in ('evt_n', 'evt_m') order by event_id`,
    );
    assert.deepEqual(rows, [
      { payload: { user_id: replacement }, user_id: '7' },
      { payload: { amount: 4242 }, user_id: null },
    ]);
  });
});
