// What docs/ops tells an operator to do in SQL, done on the ledger that the migrations make.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';
import { useLedger } from '../support/suite.ts';
import { blocksOf, readPage, sectionOf } from './docs.ts';

const CALLS = readPage('ops/call_events.md');
const RUNBOOK = readPage('ops/webhook_runbook.md');
const MIGRATION = 'db2/supabase/migrations/20260224100010_calls.sql';
const INDEX = 'calls_site_signature_hash_uq';
const POISON = [
  'quarantine:',
  'lease_lost_repeatedly',
  'the handler has ended its transaction',
  'body_differs',
];

const statementsOf = (block = ''): string[] =>
  block
    .split(';')
    .map((one) => one.trim())
    .filter((one) => one !== '');
const inOneLine = (sql: string): string => sql.replace(/\s+/g, ' ').trim();

describe('the pages of docs/ops', () => {
  const { ledger } = useLedger('ledger');

  describe('the page about call events', () => {
    const [block = '', ...others] = blocksOf(CALLS, 'sql');
    const [addColumn = '', makeIndex = ''] = statementsOf(block);
    const dropped = [...sectionOf(CALLS, 'Rollback').matchAll(/^\d\. .*`((?:drop|alter) [^`]+);`/gm)].map(
      ([, statement = '']) => statement,
    );
    const definition = () =>
      ledger.value<string | null>('select pg_get_indexdef(to_regclass($1))', [`public.${INDEX}`]);
    const hasColumn = () =>
      ledger.value<boolean>(
        `select exists (select from pg_attribute where attrelid = 'public.calls'::regclass
           and attname = 'signature_hash' and atttypid = 'text'::regtype and not attnotnull and not attisdropped)`,
      );

    it('makes the index as the migration does, but for the lock', () => {
      const migration = readFileSync(join(PROJECT, MIGRATION), 'utf8');
      const [made = ''] = new RegExp(`create unique index if not exists ${INDEX}[^;]*`).exec(migration) ?? [];
      assert.deepEqual(others, []);
      assert.match(makeIndex, / concurrently /);
      assert.equal(inOneLine(makeIndex.replace(' concurrently', '')), inOneLine(made));
    });

    it('tells of each unique index that the table has, and that an unsigned call has no entry', async () => {
      const named = [...sectionOf(CALLS, 'Size and locks').matchAll(/`(calls_\w+)`/g)].map(
        ([, name]) => name,
      );
      const there = await ledger.rows<{ name: string; predicate: string }>(
        `select i.indexrelid::regclass::text as name, pg_get_expr(i.indpred, i.indrelid) as predicate from pg_index i
         where i.indrelid = 'public.calls'::regclass and i.indisunique and not i.indisprimary`,
      );
      assert.deepEqual(there.map(({ name }) => name).sort(), [INDEX, ...named].sort());
      for (const { predicate } of there) assert.match(predicate, /signature_hash IS NOT NULL/);
    });

    it('takes index and column away by its rollback, and brings back what the migration made', async () => {
      const made = await definition();
      assert.match(made ?? '', /^CREATE UNIQUE INDEX /);
      assert.equal(dropped.length, 2);
      const [dropIndex = '', dropColumn = ''] = dropped;
      await ledger.client.query(dropIndex);
      assert.deepEqual([await definition(), await hasColumn()], [null, true]);
      await ledger.client.query(dropColumn);
      assert.equal(await hasColumn(), false);
      await ledger.client.query(addColumn);
      await ledger.client.query(makeIndex);
      assert.deepEqual([await definition(), await hasColumn()], [made, true]);
      const [broken = ''] = /select indexrelid[^`]+/.exec(CALLS) ?? [];
      assert.deepEqual(await ledger.rows(broken), []);
    });

    it('says that the index cannot be built inside a transaction', async () => {
      assert.match(inOneLine(CALLS), /`concurrently` cannot run inside a transaction/);
      await ledger.client.query('begin');
      await assert.rejects(ledger.client.query(makeIndex), { code: '25001' });
    });
  });

  describe('the runbook', () => {
    it('finds in SQL what waits, what died, the log and the alarms', async () => {
      await ledger.client.query(
        `select webhook.add_endpoint('shop', 'shop', '{STRIPE_WEBHOOK_SECRET}', 'queued', '{}', 'ann', 'opened');
         insert into public.webhook_events (webhook_id, provider, event_id, status, error)
         select p.webhook_id, 'shop', s, s::public.webhook_event_status, e
         from public.webhook_endpoints p, (values ('pending', null), ('dead_letter', 'poison'), ('success', null)) t (s, e);
         insert into public.webhook_alarms (webhook_id, provider, event_id)
         select p.webhook_id, 'shop', 'forged' from public.webhook_endpoints p`,
      );
      const answers = [];
      for (const statement of blocksOf(RUNBOOK, 'sql').flatMap(statementsOf))
        answers.push(await ledger.rows<Record<string, unknown>>(statement));
      const [pending = [], dead = [], metrics = [], log = [], alarms = []] = answers;
      assert.equal(answers.length, 5);
      assert.deepEqual(
        pending.map(({ event_id, status, attempts }) => [event_id, status, attempts]),
        [['pending', 'pending', 0]],
      );
      assert.deepEqual(
        dead.map(({ event_id, error }) => [event_id, error]),
        [['dead_letter', 'poison']],
      );
      assert.deepEqual(
        metrics.map(({ pending: waiting, dead_letter }) => [waiting, dead_letter]),
        [['1', '1']],
      );
      assert.deepEqual(
        log.map(({ actor, action, reason }) => [actor, action, reason]),
        [['ann', 'webhook_endpoint_add', 'opened']],
      );
      assert.deepEqual(
        alarms.map(({ event_id, kind }) => [event_id, kind]),
        [['forged', 'body_differs']],
      );
    });

    it('explains each status that an event can have, and none that it cannot', async () => {
      const rows = [...sectionOf(RUNBOOK, 'Look').matchAll(/^\| (`[^|]+) \|/gm)].map(([, cell = '']) => cell);
      const explained = rows.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name));
      const labels = await ledger.value<string[]>(
        'select enum_range(null::public.webhook_event_status)::text[]',
      );
      assert.deepEqual(
        [...new Set(explained)].filter((name) => name !== 'waiting_since' && name !== 'takeovers').sort(),
        labels.sort(),
      );
    });

    it('names outcomes of a replay and kinds of poison in the words of the database', async () => {
      const outcomes = [...sectionOf(RUNBOOK, 'Replay').matchAll(/^\| (`\w+`) \|/gm)].map(
        ([, name = '']) => name,
      );
      assert.equal(outcomes.length, 5);
      for (const words of POISON) assert.ok(sectionOf(RUNBOOK, 'Poison').includes(words), words);
      const unsaid = await ledger.rows(
        `select w from unnest($1::text[]) w where not exists (
           select from pg_proc p
           where p.pronamespace = 'webhook'::regnamespace and strpos(p.prosrc, w) > 0)`,
        [[...outcomes.map((name) => name.replaceAll('`', "'")), ...POISON]],
      );
      assert.deepEqual(unsaid, []);
    });
  });
});
