// The finished blocks of a long run, a line each, so that a run that was interrupted can go on. A line is of one state of the product
// files, and a run never counts the lines of another.

import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { UsageError } from '../../bench/command.ts';
import { productHash } from '../../bench/provenance.ts';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { added, type Block, emptyTally, type Tally } from './engine.ts';

type Line = { product_hash: string; model: string; seed: number; histories: number; tally: Tally };

export class BlockBook {
  readonly #file: string;
  readonly #hash: string;
  readonly #lines: Line[];

  private constructor(file: string, hash: string, lines: Line[]) {
    this.#file = file;
    this.#hash = hash;
    this.#lines = lines;
  }

  /** Begins anew unless told to resume. */
  static open(seed: number, resume: boolean, root = PROJECT_ROOT): BlockBook {
    const file = join(root, 'results', 'model', `blocks-${seed}.jsonl`);
    const hash = productHash(root);
    if (!resume) rmSync(file, { force: true });
    const lines = existsSync(file) ? readLines(file) : [];
    if (lines.some(({ product_hash }) => product_hash !== hash))
      throw new UsageError(
        `the product files have changed since the run with seed ${seed} began: begin it again without --resume`,
      );
    return new BlockBook(file, hash, lines);
  }

  has(block: Block): boolean {
    return this.#lines.some((line) => isOf(line, block));
  }

  /** Of the finished ones among these blocks. */
  tallyOf(blocks: readonly Block[]): Tally {
    return this.#lines
      .filter((line) => blocks.some((block) => isOf(line, block)))
      .reduce((sum, { tally }) => added(sum, tally), emptyTally());
  }

  write({ subject, seed, histories }: Block, tally: Tally): void {
    const line: Line = { product_hash: this.#hash, model: subject.name, seed, histories, tally };
    mkdirSync(dirname(this.#file), { recursive: true });
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
    this.#lines.push(line);
  }
}

function isOf(line: Line, { subject, seed, histories }: Block): boolean {
  return line.model === subject.name && line.seed === seed && line.histories === histories;
}

/** Removes a last line that was cut off with the run. */
function readLines(file: string): Line[] {
  const text = readFileSync(file, 'utf8');
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  truncateSync(file, Buffer.byteLength(whole));
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
