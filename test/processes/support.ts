// Commands with several processes: which process answered, which processes there are, and numbers of a page of metrics.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { ADMIN_KEY, type Answer, ask, bearer, JWT_SECRET } from '../server/support.ts';
import type { TestDatabases } from '../support/databases.ts';
import { type Sluice, sluice } from '../work/support.ts';

const POLL_MS = 50;
const PATIENCE_MS = 30_000;

export const LISTENS = /listens on (http:\S+)/;

export function envOf({ db1, db2 }: TestDatabases): Record<string, string> {
  return {
    DB1_URL: db1.url,
    DB2_URL: db2.url,
    SLUICE_ADMIN_KEY: ADMIN_KEY,
    SLUICE_JWT_SECRET: JWT_SECRET,
    SLUICE_HOST: '127.0.0.1',
    SLUICE_PORT: '0',
    SLUICE_METRICS_OPEN: '1',
  };
}

const started = new Set<Sluice>();

/** `sluice …`, which `killLeft` ends where a test that fails does not. */
export function start(args: string[], env: Record<string, string>): Sluice {
  const one = sluice(args, env);
  started.add(one);
  void one.ended.then(() => started.delete(one));
  return one;
}

export function killLeft(): void {
  for (const { child } of started) child.kill('SIGKILL');
}

export interface Served extends Sluice {
  readonly url: string;
}

/** `sluice serve` with these words, when it listens. */
export async function serve(env: Record<string, string>, ...args: string[]): Promise<Served> {
  const one = start(['serve', ...args], env);
  const [, url = ''] = await one.said(LISTENS);
  return { ...one, url };
}

/** What a supervisor says of a member that it has to kill. */
export const LATE = 'a process did not end in time, and is killed';

/** SIGTERM, and its end with 0, to which all of its processes came by themselves. */
export async function stop({ child, ended }: Sluice): Promise<void> {
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  assert.equal(code, 0, stderr);
  assert.ok(!stderr.includes(LATE), stderr);
}

/** The processes that a command has started. */
export function membersOf({ child }: Sluice): number[] {
  const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(child.pid)], { encoding: 'utf8' });
  return stdout.trim().split(/\s+/).filter(Boolean).map(Number);
}

/** The process that made the answer: its request ids begin alike. */
export function makerOf({ headers }: Pick<Answer, 'headers'>): string {
  return String(headers['x-request-id']).split('-')[0] ?? '';
}

/** Asks so often, on a connection each, one after the other. */
export async function makers(url: string, times = 10): Promise<Set<string>> {
  const seen = new Set<string>();
  for (let time = 0; time < times; time++) {
    const answer = await ask(`${url}/healthz`);
    assert.equal(answer.status, 200);
    seen.add(makerOf(answer));
  }
  return seen;
}

export async function until(
  what: string,
  test: () => Promise<boolean> | boolean,
  patienceMs = PATIENCE_MS,
): Promise<void> {
  for (const deadline = Date.now() + patienceMs; !(await test()); ) {
    assert.ok(Date.now() < deadline, `waited in vain until ${what}`);
    await pause(POLL_MS);
  }
}

/** A number of the page of metrics; undefined where the series is missing. */
export async function metric(url: string, series: string): Promise<number | undefined> {
  const { status, text } = await ask(`${url}/metrics`, { headers: bearer(ADMIN_KEY) });
  assert.equal(status, 200, text);
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}
