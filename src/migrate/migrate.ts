import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { StackError } from '../failure.ts';
import { takingTurns } from './lock.ts';
import { sqlFile } from './sql.ts';

export type MigrateResult = { applied: string[]; seeded: boolean };

type Migration = { version: string; name: string; file: string; path: string };

const MIGRATION_NAME = /^(\d+)_(.+)\.sql$/;

// The name the Supabase CLI records for a seed, as seen from the project's folder.
const SEED_NAME = 'supabase/seed.sql';

const RECORD_MIGRATION =
  'insert into supabase_migrations.schema_migrations (version, name, statements) values ($1, $2, array[$3])';
const RECORD_SEED = 'insert into supabase_migrations.seed_files (path, hash) values ($1, $2)';

/**
 * Brings a database up to the migrations in `projectDir/supabase/migrations`, oldest first, each in a
 * transaction of its own together with its record. The seed runs once in the life of a database, after them.
 * A second call applies nothing. Concurrent calls take turns.
 */
export async function migrate(
  client: pg.Client,
  projectDir: string,
  options: { seed?: boolean } = {},
): Promise<MigrateResult> {
  return takingTurns(client, async () => {
    await client.query(sqlFile('./migration_tables.sql'));
    const applied = await applyMigrations(client, join(projectDir, 'supabase', 'migrations'));
    const seeded = options.seed ? await applySeed(client, join(projectDir, 'supabase', 'seed.sql')) : false;
    return { applied, seeded };
  });
}

/** The text of each migration that was applied, by version; null where another tool recorded none. */
export async function recordedMigrations(client: pg.Client): Promise<Map<string, string | null>> {
  const { rows } = await client.query(`
    select version, array_to_string(statements, '') as statements
    from supabase_migrations.schema_migrations order by version`);
  return new Map(rows.map((row) => [row.version, row.statements]));
}

async function applyMigrations(client: pg.Client, dir: string): Promise<string[]> {
  const recorded = await recordedMigrations(client);
  const applied: string[] = [];
  for (const migration of listMigrations(dir)) {
    const text = readFileSync(migration.path, 'utf8');
    const before = recorded.get(migration.version);
    if (before === undefined) {
      await inTransaction(client, migration.path, text, RECORD_MIGRATION, [
        migration.version,
        migration.name,
        text,
      ]);
      applied.push(migration.file);
    } else if (before !== null && gist(before) !== gist(text)) {
      throw new StackError(
        `${migration.file} was changed after it had been applied to this database`,
        'put the change into a new migration, or start over with `npm run reset` if the data may go',
      );
    }
  }
  return applied;
}

function listMigrations(dir: string): Migration[] {
  if (!existsSync(dir)) return [];
  const files = readdirSync(dir).filter((file) => file.endsWith('.sql'));
  return files.sort().map((file) => {
    const [, version, name] = MIGRATION_NAME.exec(file) ?? [];
    if (version === undefined || name === undefined) {
      throw new StackError(`${file} is not named like a migration`, 'name it <timestamp>_<name>.sql');
    }
    return { version, name, file, path: join(dir, file) };
  });
}

/** The Supabase CLI stores a migration cut into statements and trimmed; we store it whole. Both compare equal. */
function gist(sql: string): string {
  return sql.replace(/[\s;]+/g, '');
}

async function applySeed(client: pg.Client, path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  const { rows } = await client.query('select hash from supabase_migrations.seed_files where path = $1', [
    SEED_NAME,
  ]);
  if (rows.length > 0) return false;
  const text = readFileSync(path, 'utf8');
  const hash = createHash('sha256').update(text).digest('hex');
  await inTransaction(client, path, text, RECORD_SEED, [SEED_NAME, hash]);
  return true;
}

async function inTransaction(
  client: pg.Client,
  path: string,
  text: string,
  record: string,
  values: string[],
): Promise<void> {
  await client.query('begin');
  try {
    await client.query(text);
    await client.query(record, values);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw atItsLine(path, text, error as pg.DatabaseError);
  }
}

function atItsLine(path: string, text: string, error: pg.DatabaseError): StackError {
  const line = error.position ? text.slice(0, Number(error.position)).split('\n').length : undefined;
  const place = line === undefined ? path : `${path}:${line}`;
  const detail = [error.detail, error.where].filter(Boolean).join('\n');
  return new StackError(
    `${place}: ${error.message} (${error.code ?? 'no code'})${detail ? `\n${detail}` : ''}`,
    error.hint ?? 'nothing of this file was applied; mend it and run again',
    error,
  );
}
