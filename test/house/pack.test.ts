import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { type CommandResult, runCommand } from '../run/command.ts';
import { cleanUpOnExit } from '../support/databases.ts';
import { PROJECT, processesUnder, readEnv } from '../support/dev.ts';

/** The registry may be away or slow; then these limits end the attempt soon. */
const PATIENCE = ['--fetch-timeout=60000', '--fetch-retries=1', '--no-audit', '--no-fund'];

/** A user's own effects, in a module outside the package. */
const HANDLERS = `import { type Handler, PermanentError } from 'sluice/handlers';
const handler: Handler = { name: 'mine', provider: 'standard', types: ['*'], apply: async () => 'nothing to do' };
console.log('loaded with', PermanentError.name);
export default [handler];
`;

/** Only its fifth line is wrong. The package's types must say so. */
const TYPED = `import { type HandledEvent, type Handler, PermanentError, type Transaction } from 'sluice/handlers';
const apply = async (event: HandledEvent, tx: Transaction) => { await tx.query('select $1', [event.eventId]); };
const handler: Handler = { name: 'mine', provider: 'standard', types: ['*'], apply };
const error: Error = new PermanentError('never');
const wrong: Handler = { name: 7, provider: 'standard', types: ['*'], apply };
export default [handler, error, wrong];
`;

/** `npx sluice dev` in `folder`, as a person would start it, on free ports. */
function startInstalled(folder: string): {
  child: ChildProcess;
  ended: Promise<number | null>;
  output(): string;
} {
  const child = spawn('npx', ['sluice', 'dev'], {
    cwd: folder,
    // A group of its own, as a terminal makes one: Ctrl-C reaches npx and all it has started.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      SLUICE_DIR: '',
      SLUICE_PORT: '0',
      DB1_API_PORT: '0',
      DB2_API_PORT: '0',
      SLUICE_HANDLERS: 'my_handlers.ts',
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { child, ended, output: () => output };
}

/** What packing needs beside the files that it packs. */
const BUILT_FROM = [
  'package.json',
  'tsconfig.json',
  'README.md',
  'LICENSE',
  'console',
  'packages',
  'src',
  'test',
  'tools',
];

describe('the packed package', () => {
  let folder: string;
  let app: string;
  let unreachable: string | undefined;
  let forget: () => void;

  const npm = (cwd: string, ...args: string[]): Promise<CommandResult> =>
    runCommand('npm', [...args, ...PATIENCE], { cwd });
  const skipIfUnreachable = (t: TestContext): boolean => {
    if (unreachable !== undefined) t.skip(unreachable);
    return unreachable !== undefined;
  };

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-pack-'));
    forget = cleanUpOnExit(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
    // A copy: packing writes to dist/, and the checkout is in use.
    const copy = join(folder, 'checkout');
    const { files } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'));
    for (const name of [...BUILT_FROM, ...files])
      if (name !== 'dist' && existsSync(join(PROJECT, name)))
        cpSync(join(PROJECT, name), join(copy, name), { recursive: true });
    symlinkSync(join(PROJECT, 'node_modules'), join(copy, 'node_modules'));
    const packed = await npm(copy, 'pack', '--pack-destination', folder);
    assert.equal(packed.code, 0, packed.output);
    app = join(folder, 'elsewhere');
    mkdirSync(app);
    writeFileSync(join(app, 'package.json'), '{ "name": "elsewhere", "private": true, "type": "module" }\n');
    const [archive = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
    const installed = await npm(app, 'install', '--prefer-offline', join(folder, archive));
    if (installed.code !== 0) unreachable = `npm cannot install here: ${installed.output}`;
  });
  after(() => {
    rmSync(folder, { recursive: true, force: true });
    forget();
  });

  it('carries what runs and nothing of what tests it', (t) => {
    if (skipIfUnreachable(t)) return;
    const root = join(app, 'node_modules', 'sluice');
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' });
    for (const file of [
      'bin/sluice.js',
      'db1/supabase/seed.sql',
      'dist/current',
      'dist/types/webhook/handlers.d.ts',
      'LICENSE',
    ])
      assert.ok(files.includes(file), `${file} is missing`);
    const forbidden =
      /(^|\/)(test|tests|_conformance|bench|\.github|\.sluice)(\/|$)|^(src|console|packages|tools)(\/|$)|\.test\.(ts|sql)$|(^|\/)\.env|^dist\/seen$/;
    assert.deepEqual(
      files.filter((file) => forbidden.test(file)),
      [],
    );
  });

  it('brings neither tsx nor typescript, and one build', (t) => {
    if (skipIfUnreachable(t)) return;
    const packages = readdirSync(join(app, 'node_modules'));
    assert.ok(packages.includes('esbuild'));
    for (const name of ['tsx', 'typescript']) assert.ok(!packages.includes(name), `${name} is installed`);
    const dist = readdirSync(join(app, 'node_modules', 'sluice', 'dist'));
    assert.equal(dist.filter((name) => /^[0-9a-f]{20}$/.test(name)).length, 1);
  });

  it('gives TypeScript users types of handlers that a strict compiler takes, and JavaScript users handlers', async (t) => {
    if (skipIfUnreachable(t)) return;
    writeFileSync(join(app, 'typed.ts'), TYPED);
    const settings = ['--noEmit', '--strict', '--module', 'nodenext', '--types', '', '--lib', 'es2023,dom'];
    const tsc = join(PROJECT, 'node_modules', '.bin', 'tsc');
    const checked = await runCommand(tsc, [...settings, '--ignoreConfig', 'typed.ts'], { cwd: app });
    assert.equal(checked.code, 1, checked.output);
    assert.deepEqual(checked.output.match(/typed\.ts\(\d+/g), ['typed.ts(5'], checked.output);
    const program = `import { PermanentError } from 'sluice/handlers'; console.log(new PermanentError('x').code);`;
    const { code, output } = await runCommand(process.execPath, ['--input-type=module', '-e', program], {
      cwd: app,
    });
    assert.equal(code, 0, output);
    assert.match(output, /^SL030$/m);
  });

  it('starts the same product in an empty folder elsewhere, functions too, and leaves nothing running', async (t) => {
    if (skipIfUnreachable(t)) return;
    writeFileSync(join(app, 'my_handlers.ts'), HANDLERS);
    const dev = startInstalled(app);
    try {
      const env = await runningEnv(join(app, '.sluice'), dev);
      assert.match(dev.output(), /loaded with PermanentError/);
      const claimed = await fetch(`${env.SLUICE_URL}/v1/pools/demo_concert_2026/claims`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"user_id":"ann","request_id":"r-1"}',
      });
      assert.equal(claimed.status, 201, await claimed.text());
      assert.equal((await fetch(`${env.SLUICE_URL}/`)).status, 200);
      assert.equal((await fetch(`${env.SLUICE_URL}/openapi.json`)).status, 200);
      const letters = await fetch(`${env.DB1_SUPABASE_URL}/functions/v1/admin-dlq`, {
        headers: { authorization: `Bearer ${env.DB1_SUPABASE_SERVICE_ROLE_KEY}` },
      });
      assert.equal(letters.status, 200, `${await letters.text()}\n${dev.output()}`);
    } finally {
      process.kill(-(dev.child.pid ?? 0), 'SIGINT');
      await dev.ended;
    }
    assert.match(dev.output(), /Stopped\.\n/);
    assert.deepEqual(processesUnder(app), []);
  });
});

/** Waits for what `sluice dev` leaves when everything answers. */
async function runningEnv(
  dir: string,
  dev: ReturnType<typeof startInstalled>,
): Promise<Record<string, string>> {
  let hasEnded = false;
  void dev.ended.then(() => {
    hasEnded = true;
  });
  while (!existsSync(join(dir, 'env')) || !dev.output().includes('Ctrl-C stops everything')) {
    if (hasEnded) throw new Error(`it ended before it was ready:\n${dev.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return readEnv(dir);
}
