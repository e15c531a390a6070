// The build of a checkout: made when it is missing, made again when the sources differ, and never somewhere that others may
// write to. Each test has a checkout of its own.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';

const SOURCES = [
  'bin',
  'tools',
  'src',
  'console',
  'db1/supabase/functions',
  'packages/client/src',
  'package.json',
  'tsconfig.json',
];
/** The ids of the user without rights that every Unix has. */
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 };
const isRoot = process.getuid?.() === 0;
const VERSION = `${JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')).version}\n`;

/** What a mistyped command is answered: a sentence of the sources that tests change. */
const SENTENCE = 'Unknown command';

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

function run(
  file: string,
  args: string[],
  options: { env?: Record<string, string>; uid?: number; gid?: number } = {},
): Promise<Ended> {
  const { env, ...user } = options;
  const child = spawn(process.execPath, [file, ...args], {
    cwd: '/',
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...user,
  });
  const ended: Ended = { code: null, stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      ended[name] += text;
    });
  return new Promise((resolve) => child.once('close', (code) => resolve({ ...ended, code })));
}

describe('the build', () => {
  let home: string;
  let project: string;
  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-build-')));
    chmodSync(home, 0o755);
    project = join(home, 'project');
    for (const name of SOURCES)
      cpSync(join(PROJECT, name), join(project, name), { recursive: true, preserveTimestamps: true });
    symlinkSync(join(PROJECT, 'node_modules'), join(project, 'node_modules'));
  });
  afterEach(() => rmSync(home, { recursive: true }));

  const sluice = (args: string[], options?: Parameters<typeof run>[2]) =>
    run(join(project, 'bin', 'sluice.js'), args, options);
  const prepare = (env: Record<string, string> = {}) => run(join(project, 'tools', 'build.js'), [], { env });
  const builds = () => readdirSync(join(project, 'dist')).filter((name) => /^[0-9a-f]{20}$/.test(name));
  /** Of the same length and with the times that the file had, as a tool may set them. */
  const changeTo = (sentence: string, old = SENTENCE) => {
    assert.equal(sentence.length, old.length);
    const file = join(project, 'src', 'commands', 'main.ts');
    const text = readFileSync(file, 'utf8');
    assert.ok(text.includes(old));
    writeFileSync(file, text.replace(old, sentence));
    const time = new Date(1_700_000_000_000);
    utimesSync(file, time, time);
  };

  it('is made by the first command where prepare did not run', async () => {
    assert.deepEqual(await sluice(['--version']), { code: 0, stdout: VERSION, stderr: '' });
    assert.equal(builds().length, 1);
  });

  it('is made by prepare, and a command that finds it writes nothing', async () => {
    assert.equal((await prepare()).code, 0);
    const look = () => readdirSync(join(project, 'dist'), { recursive: true }).sort();
    const before = look();
    assert.equal((await sluice(['--version'])).stdout, VERSION);
    assert.deepEqual(look(), before);
  });

  it('follows the sources: another content is built, the same content under other times is not', async () => {
    changeTo('UNKNOWN COMMAND');
    assert.match((await sluice(['x'])).stderr, /^UNKNOWN COMMAND x/);
    changeTo('unknown command', 'UNKNOWN COMMAND');
    assert.match((await sluice(['x'])).stderr, /^unknown command x/);
    assert.equal(builds().length, 2);
    const now = new Date();
    utimesSync(join(project, 'src', 'cli.ts'), now, now);
    assert.match((await sluice(['x'])).stderr, /^unknown command x/);
    assert.equal(builds().length, 2);
  });

  it('leaves the build of a server that runs, for a day; a package gets the newest alone', async () => {
    await sluice(['--version']);
    const [first = ''] = builds();
    changeTo('UNKNOWN COMMAND');
    await sluice(['--version']);
    assert.equal((await prepare()).code, 0);
    assert.ok(builds().includes(first));
    const yesterday = new Date(Date.now() - 25 * 60 * 60 * 1_000);
    utimesSync(join(project, 'dist', first), yesterday, yesterday);
    assert.equal((await prepare()).code, 0);
    assert.equal(builds().includes(first), false);
    changeTo('unknown command', 'UNKNOWN COMMAND');
    await sluice(['--version']);
    assert.equal((await prepare({ npm_command: 'pack' })).code, 0);
    assert.equal(builds().length, 1);
  });

  it('is whole for all commands that start while it is made', async () => {
    assert.equal((await prepare()).code, 0);
    changeTo('UNKNOWN COMMAND');
    const ended = await Promise.all(Array.from({ length: 4 }, () => sluice(['x'])));
    assert.deepEqual(
      ended.map(({ stderr }) => stderr.split('\n')[0]),
      Array.from({ length: 4 }, () => 'UNKNOWN COMMAND x.'),
    );
    assert.deepEqual(
      readdirSync(join(project, 'dist')).filter((name) => name.startsWith('.building-')),
      [],
    );
  });

  it('that cannot be made says what is wrong with the sources', async () => {
    writeFileSync(join(project, 'src', 'cli.ts'), 'this is not a program');
    const { code, stderr } = await sluice(['--version']);
    assert.equal(code, 1);
    assert.match(stderr, /^error: Sluice cannot be built: .*src\/cli\.ts:1:.*\nhint: /s);
    assert.equal((await prepare()).code, 1);
  });

  it('is left to a later command where esbuild is missing, and that command says what to run', async () => {
    rmSync(join(project, 'node_modules'));
    const prepared = await prepare();
    assert.equal(prepared.code, 0);
    assert.match(prepared.stderr, /^Sluice is not built: esbuild/);
    const { code, stderr } = await sluice(['--version']);
    assert.equal(code, 1);
    assert.equal(
      stderr,
      'error: Sluice is not built, and esbuild, which builds it, is not installed or cannot run here\n' +
        `hint: run \`npm ci\` in ${project}\n`,
    );
  });

  it('runs without sources, as in an installed package', async () => {
    assert.equal((await prepare()).code, 0);
    for (const name of ['src', 'console', 'tools']) rmSync(join(project, name), { recursive: true });
    assert.deepEqual(await sluice(['--version']), { code: 0, stdout: VERSION, stderr: '' });
    assert.match((await sluice(['serve', '--help'])).stdout, /^sluice serve/);
  });

  it('of another user is run, and not made again', async (t) => {
    if (!isRoot) {
      t.skip('only root can be another user');
      return;
    }
    assert.equal((await prepare()).code, 0);
    const now = new Date();
    utimesSync(join(project, 'src', 'cli.ts'), now, now);
    assert.deepEqual(await sluice(['--version'], UNPRIVILEGED), { code: 0, stdout: VERSION, stderr: '' });
    changeTo('UNKNOWN COMMAND');
    const { code, stderr } = await sluice(['--version'], UNPRIVILEGED);
    assert.equal(code, 1);
    assert.match(stderr, /may not write to .*\nhint: run `npm run build` there as the user who owns it\n$/);
    assert.equal(builds().length, 1);
  });

  it('and handlers in TypeScript leave a shared temporary folder alone', async () => {
    const shared = join(home, 'shared');
    mkdirSync(shared);
    chmodSync(shared, 0o1777);
    if (isRoot) chownSync(shared, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
    const handlers = join(home, 'handlers.ts');
    writeFileSync(handlers, `console.log('loaded' as string); export default [];`);
    const nowhere = 'postgres://127.0.0.1:1/none';
    const env = { TMPDIR: shared, DB1_URL: nowhere, DB2_URL: `${nowhere}2`, SLUICE_HANDLERS: handlers };
    assert.equal((await sluice(['--version'], { env })).code, 0);
    assert.equal((await sluice(['serve', '--help'], { env })).code, 0);
    assert.match((await sluice(['work', '--once'], { env })).stdout, /^loaded$/m);
    assert.deepEqual(readdirSync(shared), []);
  });
});
