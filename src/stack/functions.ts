import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { StackError } from '../failure.ts';
import { type Child, type ChildOptions, namedProgram, startChild, whenReady } from './child.ts';
import { LOOPBACK } from './ports.ts';

const require = createRequire(import.meta.url);

/** The Edge Functions of DB1, each a folder with an index.ts that a deploy takes as it is. */
export const FUNCTION_NAMES = ['bridge-worker', 'admin-dlq', 'claims', 'webhooks', 'call-events'] as const;
export type FunctionName = (typeof FUNCTION_NAMES)[number];

export type EdgeFunction = Pick<Child, 'exited' | 'stop'> & { name: FunctionName; port: number };

export type FunctionOptions = Pick<ChildOptions, 'binary' | 'logFile' | 'onSpawn' | 'env' | 'signal'> & {
  name: FunctionName;
  /** The folder that holds db1/ and node_modules/. */
  projectRoot: string;
  /** Where Deno keeps what it has compiled: inside the stack's folder, not in the user's home. */
  cacheDir: string;
};

const LIBC = process.platform === 'linux' ? '-glibc' : '';
const FUNCTIONS = join('db1', 'supabase', 'functions');

/** The Deno to use: DENO_BIN, else the one from npm; undefined where neither is to be had. */
export function findDeno(): string | undefined {
  const named = namedProgram('DENO_BIN', 'deno');
  if (named !== undefined) return named;
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
  return ['--config', join(projectRoot, FUNCTIONS, 'deno.json'), '--node-modules-dir=manual', '--no-lock'];
}

/** Runs one function as it would be deployed, on a port of its own that the system chooses. */
export async function startFunction(options: FunctionOptions): Promise<EdgeFunction> {
  const { name, binary, projectRoot, cacheDir, logFile, env, onSpawn, signal } = options;
  const entry = join(projectRoot, FUNCTIONS, name, 'index.ts');
  // Never from the network: what is not installed is an error at the start, not a download.
  const permissions = ['--cached-only', '--no-prompt', '--allow-net', '--allow-env'];
  const child = startChild({
    binary,
    args: ['run', ...denoFlags(projectRoot), ...permissions, entry],
    cwd: projectRoot,
    logFile,
    onSpawn,
    env: {
      DENO_DIR: cacheDir,
      DENO_NO_UPDATE_CHECK: '1',
      NO_COLOR: '1',
      // The address of a `Deno.serve` that names no port; with 0 the system picks a free one, and no process can take it first.
      DENO_SERVE_ADDRESS: `tcp:${LOOPBACK}:0`,
      ...env,
    },
  });
  const port = await whenReady(child, async () => announcedPort(logFile), signal);
  if (port !== undefined) return { ...child, name, port };
  await child.stop();
  throw new StackError(
    `the function ${name} did not start: ${readFileSync(logFile, 'utf8').trimEnd()}`,
    `its log is ${logFile}`,
  );
}

/** Deno's own first line, written once it listens. */
function announcedPort(logFile: string): number | undefined {
  const port = /^Listening on http:\/\/[\d.]+:(\d+)\//m.exec(readFileSync(logFile, 'utf8'))?.[1];
  return port === undefined ? undefined : Number(port);
}
