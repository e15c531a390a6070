import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const PROJECT = fileURLToPath(new URL('../../', import.meta.url));

export type Dev = {
  child: ChildProcess;
  /** Resolves when the summary is out; rejects with everything printed when it ended before that. */
  ready: Promise<void>;
  /** Resolves with the exit code, or the signal's name, once it has ended and all output is in. */
  ended: Promise<number | string>;
  output(): string;
};

export type DevOptions = {
  /** Becomes SLUICE_DIR. */
  dir: string;
  project?: string;
  env?: Record<string, string>;
  /** Words after `dev`. */
  args?: string[];
  user?: { uid: number; gid: number };
};

const READY = 'Ctrl-C stops everything';

/** Any free ones. */
export const FREE_PORTS = {
  SLUICE_PORT: '0',
  DB1_API_PORT: '0',
  DB2_API_PORT: '0',
  DB1_PORT: '0',
  DB2_PORT: '0',
};

/** `sluice dev` as a person would start it, on free ports. */
export function startDev({ dir, project = PROJECT, env = {}, args = [], user }: DevOptions): Dev {
  const child = spawn(process.execPath, [join(project, 'bin', 'sluice.js'), 'dev', ...args], {
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, SLUICE_DIR: dir, ...FREE_PORTS, ...env },
    ...user,
  });
  let output = '';
  let announce: () => void = () => undefined;
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes(READY)) announce();
    });
  }
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  const ready = new Promise<void>((resolve, reject) => {
    announce = resolve;
    void ended.then((code) => reject(new Error(`ended with ${code} before it was ready:\n${output}`)));
  });
  // A caller that awaits only `ended` must not fail by this rejection.
  ready.catch(() => undefined);
  return { child, ready, ended, output: () => output };
}

export async function stopDev(dev: Dev, signal: NodeJS.Signals = 'SIGINT'): Promise<number | string> {
  dev.child.kill(signal);
  return dev.ended;
}

export function readEnv(dir: string): Record<string, string> {
  const lines = readFileSync(join(dir, 'env'), 'utf8').trimEnd().split('\n');
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

/** The process ids a stack has noted, by name. */
export function notedPid(dir: string, name: string): number {
  return JSON.parse(readFileSync(join(dir, 'run', `${name}.json`), 'utf8')).pid;
}

/** Every running process that was started on something under `dir`. */
export function processesUnder(dir: string): string[] {
  const ps = spawnSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' });
  return ps.stdout.split('\n').filter((line) => line.includes(dir));
}

/** The project as it would be after a clone and `npm ci` elsewhere. The packages are linked where that works. */
export function copyProject(to: string): string {
  mkdirSync(to, { recursive: true });
  for (const name of [
    'bin',
    'dist',
    'tools',
    'src',
    'console',
    'packages',
    'db1',
    'db2',
    'package.json',
    'tsconfig.json',
  ]) {
    if (existsSync(join(PROJECT, name))) cpSync(join(PROJECT, name), join(to, name), { recursive: true });
  }
  const packages = [join(PROJECT, 'node_modules'), join(to, 'node_modules')];
  const linked = spawnSync('cp', ['-al', ...packages]);
  if (linked.status !== 0)
    cpSync(join(PROJECT, 'node_modules'), join(to, 'node_modules'), {
      recursive: true,
      verbatimSymlinks: true,
    });
  return to;
}
