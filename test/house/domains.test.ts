import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROJECT } from '../support/dev.ts';

const migrationsOf = (side: string): string => {
  const folder = join(PROJECT, side, 'supabase', 'migrations');
  return readdirSync(folder)
    .map((file) => readFileSync(join(folder, file), 'utf8'))
    .join('\n');
};

/** Domains that stand on another domain: generators of types call their columns "unknown". */
function stacked(sql: string): string[] {
  const domains = [...sql.matchAll(/^create domain ([\w.]+) as ([\w.]+)/gm)].map(
    ([, name = '', base = '']) => ({
      name,
      base,
    }),
  );
  const names = new Set(domains.flatMap(({ name }) => [name, name.replace(/^.*\./, '')]));
  return domains.filter(({ base }) => names.has(base)).map(({ name }) => name);
}

test('every domain stands on a type of Postgres, so that generated types know it', () => {
  const sql = `${migrationsOf('db1')}\n${migrationsOf('db2')}`;
  assert.ok(/^create domain /m.test(sql), 'there are no domains');
  assert.deepEqual(stacked(sql), []);
  const wrong = 'create domain public.a as text\n  check (true);\ncreate domain public.b as public.a;\n';
  assert.deepEqual(stacked(wrong), ['public.b']);
});
