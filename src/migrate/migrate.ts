import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type pg from 'pg';
import { StackError } from '../failure.ts';
import { refusal } from './edited.ts';
import { takingTurns } from './lock.ts';
import { findEdited, listMigrations, recordedMigrations } from './recorded.ts';
import { sqlFile } from './sql.ts';

export type MigrateResult = { applied: string[]; seeded: boolean };

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
    const applied = await applyMigrations(client, projectDir);
    const seeded = options.seed ? await applySeed(client, join(projectDir, 'supabase', 'seed.sql')) : false;
    return { applied, seeded };
  });
}

async function applyMigrations(client: pg.Client, projectDir: string): Promise<string[]> {
  const recorded = await recordedMigrations(client);
  const migrations = listMigrations(projectDir);
  const edited = findEdited(recorded, migrations);
  if (edited.length > 0) throw refusal(basename(projectDir), edited, 'own');
  const versions = new Set(recorded.map(({ version }) => version));
  const missing = migrations.filter(({ version }) => !versions.has(version));
  for (const { path, text, version, name } of missing)
    await inTransaction(client, path, text, RECORD_MIGRATION, [version, name, text]);
  return missing.map(({ file }) => file);
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
