// npm and npx put a shell between themselves and us, and it passes no SIGTERM on.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '../../src/stack/processes.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { FREE_PORTS, PROJECT, processesUnder } from '../support/dev.ts';
import { sluice } from './support.ts';

const PATIENCE_MS = 60_000;

/** Every process below this one, however deep. */
function below(pid: number): number[] {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' });
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  const children = rows.flatMap(([child = 0, parent]) => (parent === pid ? [child] : []));
  return children.flatMap((child) => [child, ...below(child)]);
}

function hasProcesses(group: number): boolean {
  const { stdout } = spawnSync('ps', ['-eo', 'pgid='], { encoding: 'utf8' });
  return stdout.split('\n').some((line) => Number(line) === group);
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!isSo()) {
    assert.ok(Date.now() < deadline, `${what}: not within ${PATIENCE_MS / 1_000} s`);
    await sleep(50);
  }
}

describe('a SIGTERM to the npm that started us', () => {
  let databases: TestDatabases;
  let home: string;
  let env: Record<string, string>;
  const groups = new Set<number>();

  before(async () => {
    databases = await startDatabases();
    home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-npm-')));
    // Root's server user must be able to get here.
    chmodSync(home, 0o755);
    env = {
      PATH: process.env.PATH ?? '',
      HOME: home,
      npm_config_offline: 'true',
      npm_config_update_notifier: 'false',
      SLUICE_LOG: 'info',
      SLUICE_DIR: join(home, '.sluice'),
      ...FREE_PORTS,
    };
  });
  after(async () => {
    // What a failed test left: the groups are ours.
    for (const group of groups) if (hasProcesses(group)) process.kill(-group, 'SIGKILL');
    await databases.stop();
    await sluice(['reset'], { SLUICE_DIR: join(home, '.sluice') }).ended;
    rmSync(home, { recursive: true, force: true });
  });

  const start = async (words: string[], more: Record<string, string>, ready: string) => {
    const [program = '', ...args] = words;
    const npm: ChildProcess = spawn(program, args, {
      cwd: PROJECT,
      env: { ...env, ...more },
      // A group of its own, so that the test can signal all of it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [npm.stdout, npm.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    // All of them have let go of their output.
    let isClosed = false;
    npm.once('close', () => {
      isClosed = true;
    });
    const pid = npm.pid ?? 0;
    groups.add(pid);
    await until(`${words.join(' ')} says "${ready}"`, () => output.includes(ready));
    const family = below(pid);
    assert.ok(family.length > 0);
    const ended = () => until('all have ended', () => isClosed && ![pid, ...family].some(isAlive));
    return { pid, ended, output: () => output };
  };
  const databaseEnv = () => ({ DB1_URL: databases.db1.url, DB2_URL: databases.db2.url });

  it('ends `npx sluice work`, which hands back what it holds', async () => {
    const { pid, ended, output } = await start(['npx', 'sluice', 'work'], databaseEnv(), 'workers started');
    process.kill(pid, 'SIGTERM');
    await ended();
    assert.match(output(), /workers stopped/);
  });

  it('is not a second signal where the whole group gets it', async () => {
    const { pid, ended, output } = await start(['npx', 'sluice', 'work'], databaseEnv(), 'workers started');
    process.kill(-pid, 'SIGTERM');
    await ended();
    assert.match(output(), /workers stopped/);
    assert.doesNotMatch(output(), /in a hurry/);
  });

  it('ends `npx sluice serve`', async () => {
    const keys = { SLUICE_ADMIN_KEY: 'a key that is long enough', SLUICE_JWT_SECRET: 's'.repeat(32) };
    const more = { ...databaseEnv(), ...keys };
    const { pid, ended } = await start(['npx', 'sluice', 'serve'], more, 'Sluice listens on');
    process.kill(pid, 'SIGTERM');
    await ended();
  });

  it('ends `npm start` with everything in it', async () => {
    const { pid, ended, output } = await start(['npm', 'start'], {}, 'Ctrl-C stops everything');
    process.kill(pid, 'SIGTERM');
    await ended();
    assert.match(output(), /Stopped\./);
    assert.deepEqual(processesUnder(home), []);
  });
});
