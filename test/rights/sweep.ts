// Looks for secrets where none belongs: in every row and setting of both databases, in files, in arguments of processes, and
// in whatever texts a test has gathered.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Session } from '../support/sessions.ts';

/** A text and where it was found. */
export type Place = readonly [where: string, text: string];

/** By name, so that a finding can be told without repeating it. */
export type Secrets = Readonly<Record<string, string>>;

/** Shorter ones would be found everywhere by chance; none of ours is. */
const SHORTEST_SECRET = 16;

/** `where: name` for each secret that is somewhere, as it is or in the disguises that a URL or a header gives it. */
export function leaks(places: Iterable<Place>, secrets: Secrets): string[] {
  const sought = Object.entries(secrets).flatMap(([name, secret]) => {
    if (secret.length < SHORTEST_SECRET) throw new Error(`${name} is too short to be sought`);
    const bytes = Buffer.from(secret);
    const looks = [
      secret,
      encodeURIComponent(secret),
      bytes.toString('base64').replace(/=+$/, ''),
      bytes.toString('hex'),
    ];
    return [...new Set(looks)].map((look) => [name, look] as const);
  });
  const found = new Set<string>();
  for (const [where, text] of places)
    for (const [name, look] of sought) if (text.includes(look)) found.add(`${where}: ${name}`);
  return [...found].toSorted();
}

/** Every row of every table, what the server is set to, and what its sessions do. */
export async function placesInDatabase(name: string, session: Session): Promise<Place[]> {
  const tables = await session.rows<{ table: string }>(
    `select c.oid::regclass::text as table from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`,
  );
  const sources = [
    ...tables.map(({ table }) => [table, `select t::text as row from ${table} t`] as const),
    ['settings', `select name || setting as row from pg_settings`],
    ['kept settings', 'select s::text as row from pg_db_role_setting s'],
    ['sessions', 'select query as row from pg_stat_activity where pid <> pg_backend_pid()'],
    ['functions', `select p.prosrc as row from pg_proc p where p.pronamespace <> 'pg_catalog'::regnamespace`],
  ] as const;
  const places: Place[] = [];
  for (const [source, sql] of sources)
    for (const { row } of await session.rows<{ row: string }>(sql))
      places.push([`${name} ${source}`, row ?? '']);
  return places;
}

/** All files under a folder but the named ones; whole, whatever is in them. */
export function placesInFiles(dir: string, except: readonly string[]): Place[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !except.some((start) => relative(dir, path).startsWith(start)))
    .map((path) => [`file ${relative(dir, path)}`, readFileSync(path, 'latin1')] as const);
}

export function placesInProcesses(): Place[] {
  const { stdout, status } = spawnSync('ps', ['-eo', 'args='], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error('ps has failed');
  return stdout.split('\n').map((line) => ['arguments of a process', line] as const);
}
