import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withClient } from '../../src/migrate/sql.ts';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { demoSecrets } from '../../src/stack/env_file.ts';
import { resetStack } from '../../src/stack/folder.ts';
import { denoFlags, FUNCTION_NAMES, findDeno } from '../../src/stack/functions.ts';
import { isAlive } from '../../src/stack/processes.ts';
import { giveToServer } from '../../src/stack/server_user.ts';
import { type Stack, startStack } from '../../src/stack/stack.ts';
import { STAND_IN_NAME } from '../../src/stack/stripe.ts';
import { cleanUpOnExit } from '../support/databases.ts';
import { notedPid } from '../support/dev.ts';

export type World = {
  stack: Stack;
  dir: string;
  stop(): Promise<void>;
};

/** Where the functions think that buyers' pages are. */
export const PUBLIC_URL = 'https://tickets.example.com';

const CHILDREN = [
  ...FUNCTION_NAMES,
  STAND_IN_NAME,
  'db1-postgrest',
  'db2-postgrest',
  'db1-postgres',
  'db2-postgres',
];

/** The stack of `npm start` without its workers: only the functions touch the queue. */
export async function startWorld(): Promise<World> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-edge-')));
  giveToServer(home);
  const dir = join(home, '.sluice');
  const starting = startStack({
    dir,
    projectRoot: PROJECT_ROOT,
    db1ApiPort: 0,
    db2ApiPort: 0,
    functionEnv: { SLUICE_LOG: 'debug', SLUICE_PUBLIC_URL: PUBLIC_URL },
    say: () => undefined,
  });
  const stack = await starting.catch((error: unknown) => {
    rmSync(home, { recursive: true });
    throw error;
  });
  // The hooks of these tests listen on this machine.
  await withClient(stack.db1.url, (client) =>
    client.query(`select public.allow_hook_host('127.0.0.1', 'test')`),
  );
  // A run that is cut short leaves no process behind; the pids are those the stack itself has noted.
  const forget = cleanUpOnExit(() => {
    const pids = CHILDREN.map((name) => notedPid(dir, name));
    for (const pid of pids.filter(isAlive)) process.kill(pid, 'SIGKILL');
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  });
  return {
    stack,
    dir,
    async stop() {
      forget();
      await stack.stop('immediate');
      await resetStack(dir);
      rmSync(home, { recursive: true });
    },
  };
}

/** The names under which scripts and functions know a stack's databases and the secrets of its demo doors. */
export function addressesOf({ db1, db2, secrets }: Stack): Record<string, string> {
  return {
    ...demoSecrets(secrets),
    SLUICE_HOOK_SECRET: secrets.hookSecret,
    SLUICE_JWT_SECRET: secrets.db1JwtSecret,
    DB1_SUPABASE_URL: db1.gateway.url,
    DB1_SUPABASE_ANON_KEY: db1.keys.anon,
    DB1_SUPABASE_SERVICE_ROLE_KEY: db1.keys.serviceRole,
    DB2_SUPABASE_URL: db2.gateway.url,
    DB2_SUPABASE_ANON_KEY: db2.keys.anon,
    DB2_SUPABASE_SERVICE_ROLE_KEY: db2.keys.serviceRole,
  };
}

export type Ran = { code: number | null; output: string };

/** `deno <command> …` on the functions. */
export function deno(
  command: string,
  args: string[],
  env: Record<string, string>,
  cacheDir: string,
): Promise<Ran> {
  const binary = findDeno();
  if (binary === undefined) throw new Error('no Deno here: set DENO_BIN');
  const settings = { DENO_DIR: cacheDir, DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1', ...env };
  return run(binary, [command, ...denoFlags(PROJECT_ROOT), ...args], settings);
}

/** Not spawnSync: the gateway that is asked lives in this very process. */
export function run(binary: string, args: string[], env: Record<string, string> = {}): Promise<Ran> {
  const child = spawn(binary, args, {
    cwd: PROJECT_ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}
