import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { hideFromGit, resetStack } from '../../src/stack/folder.ts';
import { loadSecrets } from '../../src/stack/keys.ts';
import { layout } from '../../src/stack/settings.ts';

describe("the folder of a stack in another project's repository", () => {
  let home: string;
  let dir: string;
  const git = (...args: string[]) => spawnSync('git', args, { cwd: home, encoding: 'utf8' }).stdout;

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'sluice-git-'));
    git('init', '--quiet');
    dir = join(home, '.sluice');
    mkdirSync(dir);
  });
  afterEach(() => rmSync(home, { recursive: true }));

  test('is not taken by git add, and would be without', () => {
    loadSecrets(layout(dir).secrets);
    writeFileSync(join(home, 'theirs'), '');
    assert.match(git('status', '--porcelain', '--untracked-files=all'), /secrets\.json/);
    hideFromGit(dir);
    hideFromGit(dir);
    assert.equal(git('status', '--porcelain', '--untracked-files=all'), '?? theirs\n');
  });

  test('is not removed where something of our names is not ours', async () => {
    mkdirSync(join(dir, 'env', 'bin'), { recursive: true });
    writeFileSync(join(dir, 'env', 'bin', 'python'), '');
    await assert.rejects(resetStack(dir), { code: 'ERR_FS_EISDIR' });
    assert.equal(existsSync(join(dir, 'env', 'bin', 'python')), true);
  });

  test('hides nothing where other files are, and goes with the rest', async () => {
    writeFileSync(join(dir, 'theirs'), '');
    hideFromGit(dir);
    assert.equal(existsSync(join(dir, '.gitignore')), false);
    rmSync(join(dir, 'theirs'));
    for (const path of Object.values(layout(dir)).filter((one) => one !== layout(dir).run))
      writeFileSync(path, '');
    hideFromGit(dir);
    assert.equal(await resetStack(dir), true);
    assert.equal(existsSync(dir), false);
    mkdirSync(dir);
    writeFileSync(join(dir, '.gitignore'), 'env\n');
    await resetStack(dir);
    assert.equal(readFileSync(join(dir, '.gitignore'), 'utf8'), 'env\n');
  });
});
