import type pg from 'pg';
import { extensionScript } from '../extensions/extensions.ts';
import { takingTurns } from '../lock.ts';
import { sqlFile } from '../sql.ts';

export type PlatformOptions = {
  /** Set for the role `authenticator`; left out, its password stays as it is. */
  authenticatorPassword?: string;
  /** `old`: new tables and functions are open to the API's roles, as in older Supabase projects. */
  defaults?: 'old' | 'new';
};

const PLATFORM_FILES = [
  './platform/roles.sql',
  './platform/authenticator_password.sql',
  './platform/auth.sql',
  './platform/schemas.sql',
];

/** For a superuser, where the owner of the databases may not make roles. Safe to repeat. */
export const rolesScript = (): string => sqlFile('./platform/roles.sql');

// pgmq and our stand-ins are pure SQL, so a server can have them without extension files. The schema tells
// whether one is already there.
export const SCHEMA_OF_EXTENSION = { pgmq: 'pgmq', pg_cron: 'cron', pg_net: 'net' } as const;

/** Gives a plain Postgres what a Supabase project has and our migrations build on. Safe to repeat. */
export async function applyPlatform(client: pg.Client, options: PlatformOptions = {}): Promise<void> {
  await client.query("select set_config('sluice.authenticator_password', $1, false)", [
    options.authenticatorPassword ?? '',
  ]);
  await takingTurns(client, async () => {
    for (const file of PLATFORM_FILES) await client.query(sqlFile(file));
    if (options.defaults === 'old') await client.query(sqlFile('./platform/old_default_privileges.sql'));
    await installMissing(client);
  });
}

/** Where the server has no such extension to create, its SQL is run as it is. */
async function installMissing(client: pg.Client): Promise<void> {
  for (const name of ['pgmq', 'pg_cron', 'pg_net'] as const) {
    const { rows } = await client.query(sqlFile('./platform/extension_is_missing.sql'), [
      name,
      SCHEMA_OF_EXTENSION[name],
    ]);
    if (rows[0]?.missing) await client.query(extensionScript(name));
  }
}
