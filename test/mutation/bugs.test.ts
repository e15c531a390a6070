import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';
import { BUGS, type Bug } from './bugs.ts';
import { copyTree, joinPlanted, plantedOf, tryBug, tryBugs, withBug } from './plant.ts';

const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');
const bugOf = (name: string): Bug => {
  const bug = BUGS.find((one) => one.name === name);
  assert.ok(bug, name);
  return bug;
};

describe('a planted bug', () => {
  for (const bug of BUGS)
    it(`fits into the product, and names a test that exists: ${bug.name}`, () => {
      assert.notEqual(withBug(bug, read(bug.file)), read(bug.file));
      assert.ok(read(bug.test).includes(bug.finds), `${bug.test} has no "${bug.finds}"`);
    });

  it('is refused where its place is gone, or there twice', () => {
    const bug = bugOf('slow-answer');
    assert.throws(() => withBug(bug, 'nothing'), /has its place 0 times/);
    assert.throws(() => withBug(bug, `${bug.from}\n${bug.from}`), /has its place 2 times/);
  });

  it('is found by its test, a harmless change is not, and the copy is as it was afterwards', async (t) => {
    const { copy, remove } = copyTree();
    t.after(remove);
    const bug = bugOf('asked-for-nothing');
    assert.equal((await tryBug(copy, bug)).verdict, 'found');
    assert.equal(readFileSync(join(copy, bug.file), 'utf8'), read(bug.file));
    const harmless = { ...bug, to: `${bug.from}      // harmless\n` };
    assert.equal((await tryBug(copy, harmless)).verdict, 'missed');
    const unread = { ...bug, to: '      this is not TypeScript;\n' };
    assert.equal((await tryBug(copy, unread)).verdict, 'missed', 'a file that cannot be read finds nothing');
  });

  it('is tried in lanes, and joins the kept ones with its new verdict', async () => {
    const bug = bugOf('asked-for-nothing');
    const harmless = { ...bug, name: 'harmless', to: `${bug.from}      // harmless\n` };
    const tried = plantedOf(await tryBugs([bug, harmless], 2));
    assert.deepEqual(tried, {
      planted: 2,
      found: 1,
      bugs: { 'asked-for-nothing': 'found', harmless: 'missed' },
    });
    const mended = joinPlanted(tried, { planted: 1, found: 1, bugs: { harmless: 'found' } });
    assert.deepEqual(mended, { planted: 2, found: 2, bugs: { ...tried.bugs, harmless: 'found' } });
  });
});
