import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';

const DIR = join(PROJECT, 'docs', 'decisions');
const read = (file: string) => readFileSync(join(DIR, file), 'utf8');
const records = readdirSync(DIR).filter((file) => file !== 'README.md');

/** What is wrong with the head of a record: its number, its title, and a line with date and status under it. */
function faultsOf(file: string, text: string, others: readonly string[]): string[] {
  const [title = '', blank, facts = ''] = text.split('\n');
  const faults: string[] = [];
  const number = Number(/^(\d{4})-[a-z0-9-]+\.md$/.exec(file)?.[1]);
  if (!title.startsWith(`# ${number}. `)) faults.push(`the title does not begin with ${number}`);
  const [, date, status = ''] = /^Date: (\S+)\. Status: (.+)\.$/.exec(facts) ?? [];
  if (blank !== '' || date === undefined) return [...faults, 'the third line is not its date and status'];
  if (!/^20\d\d-\d\d-\d\d$/.test(date) || Number.isNaN(Date.parse(date)))
    faults.push(`${date} is not a date`);
  const [, follower] = /^superseded by \[\d+\]\((.+)\)$/.exec(status) ?? [];
  if (status !== 'accepted' && (follower === undefined || !others.includes(follower)))
    faults.push(`"${status}" is neither accepted nor superseded by a record that is there`);
  return faults;
}

describe('the records of decisions', () => {
  const index = read('README.md');

  for (const file of records) {
    it(`${file} has its number, a date and a status`, () => {
      const others = records.filter((other) => other !== file);
      assert.deepEqual(faultsOf(file, read(file), others), []);
    });

    it(`${file} is listed in the index by its title`, () => {
      const [, title] = /^# \d+\. (.+)\n/.exec(read(file)) ?? [];
      assert.ok(index.includes(`| [${file.slice(0, 4)}](${file}) | ${title} |`), `${file}: ${title}`);
    });
  }

  it('have one number each', () => {
    const numbers = records.map((file) => file.slice(0, 4));
    assert.deepEqual([...new Set(numbers)], numbers);
  });

  const good = '# 2. A choice\n\nDate: 2026-11-15. Status: accepted.\n\n**Context.** …\n';
  for (const [what, text, count] of [
    ['accept a good one', good, 0],
    ['accept one with a follower', good.replace('accepted', 'superseded by [12](0012-b.md)'), 0],
    ['refuse one without date and status', good.replace(/Date.*\n/, ''), 1],
    ['refuse a day that no calendar has', good.replace('11-15', '13-45'), 1],
    ['refuse a follower that is not there', good.replace('accepted', 'superseded by [13](0013-c.md)'), 1],
    ['refuse another status', good.replace('accepted', 'wished for'), 1],
    ['refuse the number of another', good.replace('# 2.', '# 3.'), 1],
  ] as const)
    it(`are read by rules that ${what}`, () => {
      assert.equal(faultsOf('0002-a.md', text, ['0012-b.md']).length, count);
    });
});
