import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endThoseIn } from './leftovers.ts';

/** Every user may make files in it, only a file's owner may remove it: tests start servers as other users. */
const MODE_SHARED_TEMP = 0o1777;
const MODE_READABLE = 0o755;

/**
 * The one folder a run writes to. Tests get it as TMPDIR, so whatever they forget is found here and removed, and the
 * servers they left running are found by it.
 */
export type Workspace = {
  /** Ends what was left running here and says what. */
  endLeftovers(): Promise<string[]>;
  remove(): void;
};

/** From here on this process and what it starts write below the workspace. */
export function createWorkspace(): Workspace {
  // As the system itself names it when it is asked where a process writes.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-test-')));
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
    endLeftovers: () => endThoseIn(folder),
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
}
