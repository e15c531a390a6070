import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { findPostgrest, startPostgrest } from '../../src/stack/postgrest.ts';
import { cleanUpOnExit, type TestDatabase } from './databases.ts';

export const TEST_JWT_SECRET = 'a-secret-for-tests-that-is-long-enough-for-hs256';

export type TestPostgrest = {
  url: string;
  /** A token for the role; `sub` for a signed-in user. */
  token(role: string, sub?: string): Promise<string>;
  stop(): Promise<void>;
};

/** A real PostgREST on a test database. */
export async function startTestPostgrest(database: TestDatabase): Promise<TestPostgrest> {
  const binary = findPostgrest();
  if (binary === undefined) throw new Error('no PostgREST here: set POSTGREST_BIN');
  const dir = mkdtempSync(join(tmpdir(), 'sluice-postgrest-'));
  let pid: number | undefined;
  const forget = cleanUpOnExit(() => {
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });
  const postgrest = await startPostgrest({
    binary,
    databaseUrl: database.authenticatorUrl,
    jwtSecret: TEST_JWT_SECRET,
    logFile: join(dir, 'postgrest.log'),
    onSpawn: (spawned) => {
      pid = spawned;
    },
  });
  return {
    url: postgrest.url,
    token: (role, sub) =>
      new SignJWT({ role, ...(sub && { sub }) })
        .setProtectedHeader({ alg: 'HS256' })
        .setExpirationTime('1h')
        .sign(new TextEncoder().encode(TEST_JWT_SECRET)),
    async stop() {
      forget();
      await postgrest.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
