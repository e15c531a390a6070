// `sluice serve` and `sluice work` as processes of their own, to be killed.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { ADMIN_KEY, JWT_SECRET } from '../server/support.ts';
import { POOLER_ENV } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';
import { SECRETS } from './world.ts';

export interface Running {
  child: ChildProcess;
  /** Where it listens; empty for a worker. */
  url: string;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>;
}

export interface Urls {
  db1Url: string;
  db2Url: string;
}

export interface StartOptions {
  /** Another checkout whose program it is; ours where left out. */
  root?: string;
  env?: Record<string, string>;
}

const SERVING = /Sluice listens on (http:\/\/\S+)/;
const WORKING = /"message":"workers started"/;

async function start(
  command: string,
  urls: Urls,
  ready: RegExp,
  { root = PROJECT, env = {} }: StartOptions = {},
): Promise<Running> {
  const child = spawn(process.execPath, [join(root, 'bin', 'sluice.js'), command], {
    cwd: '/',
    env: {
      PATH: process.env.PATH ?? '',
      SLUICE_LOG: 'info',
      SLUICE_PORT: '0',
      SLUICE_ADMIN_KEY: ADMIN_KEY,
      SLUICE_JWT_SECRET: JWT_SECRET,
      DB1_URL: urls.db1Url,
      DB2_URL: urls.db2Url,
      ...SECRETS,
      ...POOLER_ENV,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    const onText = (text: string) => {
      output += text;
      const match = ready.exec(output);
      if (match !== null) resolve(match[1] ?? '');
    };
    child.stdout?.setEncoding('utf8').on('data', onText);
    child.stderr?.setEncoding('utf8').on('data', onText);
    void ended.then((code) => reject(new Error(`sluice ${command} ended with ${code}:\n${output}`)));
  });
  // What it says from now on is read and dropped, so that the pipe never fills.
  for (const stream of [child.stdout, child.stderr]) stream?.removeAllListeners('data').resume();
  return {
    child,
    url,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
    async stop() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

export const startServe = (urls: Urls, options?: StartOptions) => start('serve', urls, SERVING, options);
export const startWork = (urls: Urls, options?: StartOptions) => start('work', urls, WORKING, options);
