import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type CommandResult, runCommand } from '../run/command.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

/**
 * The real Supabase CLI reads both projects. It comes by npx and is not in the lock file: its platform packages are
 * not complete on every registry, and Sluice runs without it.
 */
const CLI = 'supabase@3.1.0';
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SIDES = ['db1', 'db2'] as const;

let databases: TestDatabases;
let folder: string;
let unreachable: string | undefined;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'));
  for (const side of SIDES) cpSync(join(ROOT, side), join(folder, side), { recursive: true });
  const version = await cli('db1', ['--version']);
  if (version.code !== 0) unreachable = `npx cannot fetch ${CLI}: ${version.output}`;
  databases = await startDatabases();
});

after(async () => {
  await databases.stop();
  rmSync(folder, { recursive: true });
});

/** A copy of the project is its working folder: the CLI writes notes of its own beside config.toml. */
function cli(side: string, args: readonly string[]): Promise<CommandResult> {
  // `env` sets the variables for this one command; the CLI would otherwise report its use over the network.
  const quiet = ['DO_NOT_TRACK=1', 'SUPABASE_TELEMETRY_DISABLED=1'];
  return runCommand('env', [...quiet, 'npx', '--yes', CLI, ...args], { cwd: join(folder, side) });
}

function dryRun(side: (typeof SIDES)[number]): Promise<CommandResult> {
  return cli(side, ['db', 'push', '--dry-run', '--yes', `--remote=${databases[side].url}`]);
}

function skipIfUnreachable(t: TestContext): boolean {
  if (unreachable !== undefined) t.skip(unreachable);
  return unreachable !== undefined;
}

for (const side of SIDES) {
  test(`the CLI accepts ${side} and has nothing to push after our own runner has applied the migrations`, async (t) => {
    if (skipIfUnreachable(t)) return;
    const { code, output } = await dryRun(side);
    assert.equal(code, 0, output);
    assert.match(output, /database is up to date/);
  });

  test(`the CLI would push a migration of ${side} that our runner has not applied, and only that`, async (t) => {
    if (skipIfUnreachable(t)) return;
    const file = '29990101000000_later.sql';
    const path = join(folder, side, 'supabase', 'migrations', file);
    writeFileSync(path, 'select 1;\n');
    t.after(() => rmSync(path));
    const { output } = await dryRun(side);
    assert.match(output, new RegExp(file));
    for (const applied of readdirSync(join(ROOT, side, 'supabase', 'migrations'))) {
      assert.ok(!output.includes(applied), `${applied} would be pushed again`);
    }
  });
}
