// Which migrations this checkout has, which the database has, and whether they are the same files.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { StackError } from '../failure.ts';

export type Migration = { version: string; name: string; file: string; path: string; text: string };

/** A migration that was applied to a database and is another file here, or is not here at all. */
export type EditedMigration = { file: string; applied: string; here: string | undefined };

const MIGRATION_NAME = /^(\d+)_(.+)\.sql$/;
const SHOWN_HASH_CHARS = 8;

/** Oldest first. */
export function listMigrations(projectDir: string): Migration[] {
  const dir = join(projectDir, 'supabase', 'migrations');
  if (!existsSync(dir)) return [];
  const files = readdirSync(dir).filter((file) => file.endsWith('.sql'));
  return files.sort().map((file) => {
    const [, version, name] = MIGRATION_NAME.exec(file) ?? [];
    if (version === undefined || name === undefined) {
      throw new StackError(`${file} is not named like a migration`, 'name it <timestamp>_<name>.sql');
    }
    const path = join(dir, file);
    return { version, name, file, path, text: readFileSync(path, 'utf8') };
  });
}

type RecordedMigration = { version: string; name: string | null; statements: string | null };

/** What the database says was applied to it; nothing where it has no record. */
export async function recordedMigrations(client: pg.Client): Promise<RecordedMigration[]> {
  const { rows } = await client.query(`
    select exists (
      select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'supabase_migrations' and c.relname = 'schema_migrations'
    ) as has_record`);
  if (!rows[0].has_record) return [];
  const { rows: recorded } = await client.query(`
    select version, name, array_to_string(statements, '') as statements
    from supabase_migrations.schema_migrations order by version`);
  return recorded;
}

/**
 * The applied migrations that differ from the files here. A record without statements says nothing about its content and
 * counts as the same. A version later than all files here belongs to the owner of the database, or to a newer Sluice.
 */
export function findEdited(
  recorded: readonly RecordedMigration[],
  files: readonly Migration[],
): EditedMigration[] {
  const byVersion = new Map(files.map((file) => [file.version, file]));
  const newest = files.at(-1)?.version ?? '';
  return recorded.flatMap(({ version, name, statements }) => {
    const file = byVersion.get(version);
    if (statements === null || (file === undefined && version > newest)) return [];
    const applied = fingerprint(statements);
    const here = file === undefined ? undefined : fingerprint(file.text);
    if (applied === here) return [];
    const shown = (hash: string): string => hash.slice(0, SHOWN_HASH_CHARS);
    return [
      {
        file: file?.file ?? `${version}_${name ?? ''}.sql`,
        applied: shown(applied),
        here: here === undefined ? undefined : shown(here),
      },
    ];
  });
}

/** The Supabase CLI stores a migration cut into statements and trimmed; we store it whole. Both have one fingerprint. */
function fingerprint(sql: string): string {
  const gist = sql.replace(/[\s;]+/g, '');
  return createHash('sha256').update(gist).digest('hex');
}
