import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { StackError } from '../failure.ts';

export type Settings = {
  dir: string;
  sluicePort: number;
  db1ApiPort: number;
  db2ApiPort: number;
  /** Of Postgres; undefined leaves the choice to the stack. */
  db1Port: number | undefined;
  db2Port: number | undefined;
};

const HIGHEST_PORT = 65_535;

export function readSettings(env: NodeJS.ProcessEnv): Settings {
  return {
    dir: readDir(env),
    sluicePort: readPort(env, 'SLUICE_PORT') ?? 4000,
    db1ApiPort: readPort(env, 'DB1_API_PORT') ?? 54321,
    db2ApiPort: readPort(env, 'DB2_API_PORT') ?? 54421,
    db1Port: readPort(env, 'DB1_PORT'),
    db2Port: readPort(env, 'DB2_PORT'),
  };
}

function readDir(env: NodeJS.ProcessEnv): string {
  const dir = resolve(env.SLUICE_DIR || '.sluice');
  if (!existsSync(dir) || statSync(dir).isDirectory()) return dir;
  throw new StackError(
    `${dir} is a file`,
    'set SLUICE_DIR to the folder of a stack, or to one that is not there yet',
  );
}

function readPort(env: NodeJS.ProcessEnv, name: string): number | undefined {
  const text = env[name];
  if (!text) return undefined;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= HIGHEST_PORT) return port;
  throw new StackError(
    `${name}=${text} is not a port`,
    `use a number from 1 to ${HIGHEST_PORT}, or 0 for any free one`,
  );
}

/** What lies where in the folder of a stack. */
export function layout(dir: string) {
  return {
    env: join(dir, 'env'),
    secrets: join(dir, 'secrets.json'),
    control: join(dir, 'control.json'),
    stripe: join(dir, 'stripe.jsonl'),
    run: join(dir, 'run'),
    postgres: join(dir, 'postgres'),
  };
}
