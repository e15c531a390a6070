import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cleanUpOnExit } from '../test/support/databases.ts';

const VARIABLE = 'SLUICE_TEST_TEMPLATE';

/** While it runs, databases are copies of ones that were made once: a suite that opens many worlds migrates only the first. */
export async function withTemplates<T>(work: () => Promise<T>): Promise<T> {
  if (process.env[VARIABLE]) return work();
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-templates-'));
  const remove = (): void => rmSync(dir, { recursive: true, force: true });
  const forget = cleanUpOnExit(remove);
  process.env[VARIABLE] = dir;
  try {
    return await work();
  } finally {
    delete process.env[VARIABLE];
    remove();
    forget();
  }
}
