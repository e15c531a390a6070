import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { BlockBook } from './block_book.ts';
import { type Block, emptyTally, type Tally } from './engine.ts';
import { CLAIMS, EVENTS } from './subjects.ts';

const SEED = 5;
const block = (at: number, subject = CLAIMS): Block => ({ subject, seed: SEED + at, histories: 250 });
const tally = (commands: number, answers: Record<string, number>): Tally => ({
  ...emptyTally(),
  ...{ histories: 250, commands, longest: commands, answers, unknownSteps: ['public.claims: a → b'] },
});

describe('the finished blocks of a long run', () => {
  let root: string;
  const git = (...args: string[]) =>
    assert.equal(
      spawnSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd: root }).status,
      0,
    );
  before(() => {
    root = mkdtempSync(join(tmpdir(), 'sluice-blocks-'));
    git('init', '-q');
    writeFileSync(join(root, 'package.json'), '{}');
    git('add', '.');
    git('commit', '-qm', 'x');
  });
  after(() => rmSync(root, { recursive: true, force: true }));

  it('count in the run that goes on, each once, and only those that it asks for', () => {
    const first = BlockBook.open(SEED, false, root);
    first.write(block(0), tally(10, { claimed: 2 }));
    first.write(block(1), tally(7, { claimed: 1, sold_out: 1 }));
    first.write(block(0, EVENTS), tally(3, {}));
    const second = BlockBook.open(SEED, true, root);
    assert.deepEqual(
      [block(0), block(1), block(2)].map((one) => second.has(one)),
      [true, true, false],
    );
    assert.deepEqual(second.tallyOf([block(0), block(1), block(2)]), {
      ...tally(17, { claimed: 3, sold_out: 1 }),
      ...{ histories: 500, longest: 10 },
    });
  });

  it('leave out a line that was cut off with the run', () => {
    const book = BlockBook.open(SEED + 50, false, root);
    book.write(block(50), tally(1, {}));
    appendFileSync(join(root, 'results', 'model', `blocks-${SEED + 50}.jsonl`), '{"product_hash":');
    BlockBook.open(SEED + 50, true, root).write(block(51), tally(1, {}));
    const again = BlockBook.open(SEED + 50, true, root);
    assert.deepEqual(
      [50, 51].map((at) => again.has(block(at))),
      [true, true],
    );
  });

  it('are forgotten by a run that begins anew', () => {
    BlockBook.open(SEED, false, root);
    assert.equal(BlockBook.open(SEED, true, root).has(block(0)), false);
  });

  it('are refused where the product files have changed since', () => {
    BlockBook.open(SEED, false, root).write(block(0), tally(1, {}));
    writeFileSync(join(root, 'package.json'), '{"version":"2.0.0"}');
    assert.throws(
      () => BlockBook.open(SEED, true, root),
      /product files have changed since the run with seed 5/,
    );
  });
});
