import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { StackError } from '../failure.ts';
import { LOOPBACK } from './ports.ts';

const require = createRequire(import.meta.url);

/** The Edge Functions of DB1, each a folder with an index.ts that a deploy takes as it is. */
export const FUNCTION_NAMES = ['bridge-worker', 'admin-dlq', 'webhooks', 'call-events'] as const;
export type FunctionName = (typeof FUNCTION_NAMES)[number];

export type EdgeFunction = {
  name: FunctionName;
  port: number;
  exited: Promise<void>;
  stop(): Promise<void>;
};

export type FunctionOptions = {
  name: FunctionName;
  binary: string;
  /** The folder that holds db1/ and node_modules/. */
  projectRoot: string;
  /** Where Deno keeps what it has compiled: inside the stack's folder, not in somebody's home. */
  cacheDir: string;
  logFile: string;
  env: Record<string, string>;
  /** Told the process id before it is ready, so that a kill in between leaves no stranger behind. */
  onSpawn?(pid: number): void;
};

const READY_DEADLINE_MS = 30_000;
const READY_PAUSE_MS = 20;
const STOP_PATIENCE_MS = 5_000;

const LIBC = process.platform === 'linux' ? '-glibc' : '';

/** The Deno to use: DENO_BIN, else the one from npm; undefined where neither is to be had. */
export function findDeno(): string | undefined {
  const named = process.env.DENO_BIN;
  if (named) {
    if (existsSync(named)) return named;
    throw new StackError(
      `DENO_BIN names ${named}, which does not exist`,
      'set it to the deno program, or unset it',
    );
  }
  try {
    // Found from the package that depends on it: the platform package need not stand at the top of node_modules.
    const fromDeno = createRequire(require.resolve('deno/package.json'));
    const platform = `@deno/${process.platform}-${process.arch}${LIBC}/package.json`;
    return join(dirname(fromDeno.resolve(platform)), process.platform === 'win32' ? 'deno.exe' : 'deno');
  } catch {
    // An optional package that does not exist for every platform; the caller says what is missing without it.
    return undefined;
  }
}

/** What every call of Deno on the functions needs: the packages are those that npm installed. */
export function denoFlags(projectRoot: string): string[] {
  const config = join(projectRoot, 'db1', 'supabase', 'functions', 'deno.json');
  return ['--config', config, '--node-modules-dir=manual', '--no-lock'];
}

/** Runs one function as it would be deployed, on a port of its own that the system chooses. */
export async function startFunction(options: FunctionOptions): Promise<EdgeFunction> {
  const child = spawnDeno(options);
  if (child.pid !== undefined) options.onSpawn?.(child.pid);
  let ended = false;
  const exited = new Promise<void>((resolve) => {
    const onEnd = () => {
      ended = true;
      resolve();
    };
    child.once('exit', onEnd);
    child.once('error', onEnd);
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS);
    await exited;
    clearTimeout(impatience);
  };
  const until = Date.now() + READY_DEADLINE_MS;
  while (!ended && Date.now() < until) {
    const port = announcedPort(options.logFile);
    if (port !== undefined) return { name: options.name, port, exited, stop };
    await delay(READY_PAUSE_MS);
  }
  await stop();
  throw new StackError(
    `the function ${options.name} did not start: ${readFileSync(options.logFile, 'utf8').trimEnd()}`,
    `its log is ${options.logFile}`,
  );
}

/** Deno's own first line, written once it listens. */
function announcedPort(logFile: string): number | undefined {
  const port = /^Listening on http:\/\/[\d.]+:(\d+)\//m.exec(readFileSync(logFile, 'utf8'))?.[1];
  return port === undefined ? undefined : Number(port);
}

function spawnDeno({ name, binary, projectRoot, cacheDir, logFile, env }: FunctionOptions): ChildProcess {
  const entry = join(projectRoot, 'db1', 'supabase', 'functions', name, 'index.ts');
  const log = openSync(logFile, 'w', 0o600);
  // Never from the network: what is not installed is an error at the start, not a download.
  const permissions = ['--cached-only', '--no-prompt', '--allow-net', '--allow-env'];
  const child = spawn(binary, ['run', ...denoFlags(projectRoot), ...permissions, entry], {
    cwd: projectRoot,
    // Its own process group, as for Postgres: Ctrl-C reaches us, and we stop it in the right order.
    detached: true,
    stdio: ['ignore', log, log],
    env: {
      PATH: process.env.PATH ?? '',
      DENO_DIR: cacheDir,
      DENO_NO_UPDATE_CHECK: '1',
      NO_COLOR: '1',
      // Moves a `Deno.serve` that names no port; 0 is a free one, and nobody can take it in between.
      DENO_SERVE_ADDRESS: `tcp:${LOOPBACK}:0`,
      ...env,
    },
  });
  closeSync(log);
  return child;
}
