// docs/paid_tickets.md tells what buyers see in the words of the pages: what stands there in italics stands on a page.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';
import { readPage } from './docs.ts';

const PAGE = readPage('paid_tickets.md');
const TABLE = PAGE.split('## What can go wrong')[1]?.split('How long can an order hold its seats')[0] ?? '';

/** What the pages can say, on one line. */
function textOfPages(): string {
  const folder = join(PROJECT, 'console', 'drop');
  const files = [
    ...readdirSync(folder).map((name) => join(folder, name)),
    join(PROJECT, 'src', 'tickets', 'page.ts'),
  ];
  return files.map((file) => readFileSync(file, 'utf8').replace(/\s+/g, ' ')).join('\n');
}

describe('what can go wrong with paid tickets', () => {
  it('is told in the words of the pages', () => {
    const said = [...TABLE.matchAll(/\*([^*]+)\*/g)].map(([, words]) => words ?? '');
    assert.ok(said.length > 20, String(said.length));
    const pages = textOfPages();
    assert.deepEqual(
      said.filter((words) => !pages.includes(words)),
      [],
    );
  });

  it('says for each what the buyer sees', () => {
    const rows = TABLE.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| what |'));
    assert.ok(rows.length > 20, String(rows.length));
    for (const row of rows) {
      const cells = row.split('|').slice(1, -1);
      assert.deepEqual([cells.length, cells.every((cell) => cell.trim() !== '')], [3, true], row);
    }
  });
});
