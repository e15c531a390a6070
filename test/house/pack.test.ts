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

/** The registry may be away or slow; then there is nothing to try, and that is soon clear. */
const PATIENCE = ['--fetch-timeout=60000', '--fetch-retries=1', '--no-audit', '--no-fund'];

/** Effects of one's own, in a module that is no part of the package. */
const HANDLERS = `import { type Handler, PermanentError } from 'sluice/handlers';
const handler: Handler = { name: 'mine', provider: 'standard', types: ['*'], apply: async () => 'nothing to do' };
console.log('loaded with', PermanentError.name);
export default [handler];
`;

/** `npx sluice dev` in `folder`, as a person would start it, on ports nobody else has. */
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
    // A copy: packing builds, and the checkout is not the place for it.
    const copy = join(folder, 'checkout');
    const { files } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'));
    for (const name of ['package.json', 'tsconfig.json', 'README.md', 'LICENSE', 'test', ...files])
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
    for (const file of ['bin/sluice.js', 'src/cli.ts', 'db1/supabase/seed.sql', 'LICENSE'])
      assert.ok(files.includes(file), `${file} is missing`);
    const forbidden =
      /(^|\/)(test|tests|_conformance|bench|\.github|\.sluice)(\/|$)|\.test\.(ts|sql)$|(^|\/)\.env/;
    assert.deepEqual(
      files.filter((file) => forbidden.test(file)),
      [],
    );
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
