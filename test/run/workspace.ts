import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { commandLine, isAlive, stopProcess } from '../../src/stack/processes.ts';

/** Anybody may make files in it, only the owner may remove them: tests start servers as other users. */
const MODE_SHARED_TEMP = 0o1777;
const MODE_READABLE = 0o755;
const SEARCH_DEPTH_MAX = 6;
const STOP_PATIENCE_MS = 5_000;

/**
 * The one folder a run writes to. Tests get it as TMPDIR, so whatever they forget is found here and removed, and a
 * Postgres they left running is found by its pid file.
 */
export type Workspace = {
  /** Ends the Postgres servers that were left running and says which. */
  endLeftovers(): Promise<string[]>;
  remove(): void;
};

/** From here on this process and what it starts write below the workspace. */
export function createWorkspace(): Workspace {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'));
  chmodSync(folder, MODE_READABLE);
  const temp = join(folder, 'tmp');
  const template = join(folder, 'template');
  for (const shared of [temp, template]) {
    mkdirSync(shared);
    chmodSync(shared, MODE_SHARED_TEMP);
  }
  process.env.TMPDIR = temp;
  process.env.SLUICE_TEST_TEMPLATE = template;
  return {
    endLeftovers: async () => (await Promise.all(findPidFiles(folder, 0).map(endServer))).flat(),
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
}

function findPidFiles(folder: string, depth: number): string[] {
  const own = join(folder, 'postmaster.pid');
  if (existsSync(own)) return [own];
  // Tests that are just ending remove their folders while we look.
  if (depth === SEARCH_DEPTH_MAX || !existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => findPidFiles(join(folder, entry.name), depth + 1));
}

async function endServer(pidFile: string): Promise<string[]> {
  const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
  // A pid file can outlive its server (tests kill servers on purpose), and its number can be somebody else's by now.
  if (!isAlive(pid) || !commandLine(pid).includes(dirname(pidFile))) return [];
  await stopProcess(pid, ['SIGQUIT', 'SIGKILL'], STOP_PATIENCE_MS);
  return [`Postgres (pid ${pid}) was left running on ${dirname(pidFile)}`];
}
