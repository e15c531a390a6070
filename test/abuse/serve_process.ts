// `sluice serve` as a process of its own, whose every word is kept.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ADMIN_KEY, JWT_SECRET } from '../server/support.ts';
import { cleanUpOnExit } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';
import { SECRETS as WEBHOOK_SECRETS } from '../webhook/world.ts';
import { TICKET_SECRET } from './place.ts';

export const SECRETS: Readonly<Record<string, string>> = {
  ...WEBHOOK_SECRETS,
  OPS_SITE_SECRET: 'secret-of-the-site-that-is-abused',
  SLUICE_TICKET_SECRET: TICKET_SECRET,
};

export interface ServeProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly port: number;
  output(): string;
  isRunning(): boolean;
  /** Resident memory in megabytes, as the kernel counts it. */
  rssMb(): number;
  /** SIGTERM; resolves with the exit code, or null where it did not end by itself. */
  stop(): Promise<number | null>;
}

/** Enough to find a first failure in, and little enough to keep in memory after 100,000 requests. */
const MAX_OUTPUT_CHARS = 4_000_000;
/** Far longer than the server waits for open requests: a process that still runs by then never ends. */
const STOP_MS = 60_000;
const KB_PER_MB = 1_024;

export async function startServeProcess(
  urls: { db1Url: string; db2Url: string },
  env: Record<string, string> = {},
): Promise<ServeProcess> {
  const child = spawn(process.execPath, [join(PROJECT, 'bin', 'sluice.js'), 'serve'], {
    cwd: '/',
    env: {
      PATH: process.env.PATH ?? '',
      SLUICE_LOG: 'info',
      SLUICE_PORT: '0',
      SLUICE_HOST: '127.0.0.1',
      SLUICE_ADMIN_KEY: ADMIN_KEY,
      SLUICE_JWT_SECRET: JWT_SECRET,
      DB1_URL: urls.db1Url,
      DB2_URL: urls.db2Url,
      ...SECRETS,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const forget = cleanUpOnExit(() => child.kill('SIGKILL'));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        if (output.length < MAX_OUTPUT_CHARS) output += text;
        const found = /Sluice listens on (http:\/\/\S+)/.exec(output)?.[1];
        if (found !== undefined) resolve(found);
      });
    void ended.then((code) => reject(new Error(`sluice serve ended with ${code}:\n${output}`)));
  });
  return {
    child,
    url,
    port: Number(new URL(url).port),
    output: () => output,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    rssMb: () => {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / KB_PER_MB;
    },
    async stop() {
      forget();
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      const code = await ended;
      clearTimeout(timer);
      return code;
    },
  };
}
