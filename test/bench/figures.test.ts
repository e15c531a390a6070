import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type Kept, keepRaw, keepResult, PAGES, pageOf, readKept } from '../../bench/figures.ts';
import { originOf } from '../../bench/origin.ts';
import { productHash, UNKNOWN } from '../../bench/provenance.ts';
import { SUITES } from '../../bench/suites.ts';
import { PROJECT } from '../support/dev.ts';

const read = (name: string): string => readFileSync(join(PROJECT, name), 'utf8');
const TREE = 'd'.repeat(64);

describe('the figures in pages', () => {
  for (const name of Object.keys(PAGES))
    test(`of ${name} are those of the kept summaries`, (t) => {
      const tree = productHash();
      if (tree === UNKNOWN) return t.skip('git does not say which files these are');
      assert.equal(
        read(name),
        pageOf(name, read(name), readKept(), tree),
        'npm run bench -- figures writes it',
      );
    });

  test('are noticed when a digit of one is changed by hand', () => {
    const written = pageOf('docs/tune.md', read('docs/tune.md'), readKept(), TREE);
    const changed = written.replace(
      /\| (\d)([\d,]+) \|/,
      (_, first, rest) => `| ${9 - Number(first)}${rest} |`,
    );
    assert.notEqual(changed, written);
    assert.equal(pageOf('docs/tune.md', changed, readKept(), TREE), written);
  });

  test('name their run, their commit and its product files, and say where these have changed since', () => {
    const [summary] = Object.values(readKept());
    assert.ok(summary);
    const { product_hash, command, commit } = summary;
    const other = originOf(summary, TREE);
    for (const part of [command, commit.slice(0, 7), product_hash.slice(0, 12), summary.at.slice(0, 10)])
      assert.ok(other.includes(part), `${part} is not in ${other}`);
    assert.match(other, /\*\*The product files have changed since\.\*\*/);
    assert.match(originOf(summary, product_hash), /These are the product files of this tree\./);
  });

  test('say of which suites no run is kept', () => {
    const page = pageOf('bench/README.md', read('bench/README.md'), {}, TREE);
    const [, list = ''] = /^No run is kept of (.*): this page has no figures/m.exec(page) ?? [];
    assert.deepEqual(
      list.split(', ').map((name) => name.replaceAll('`', '')),
      Object.keys(SUITES),
    );
  });

  test('are refused in a block that no code writes, and asked for where a block is gone', () => {
    const unknown = '<!-- figures: moon -->\n\n<!-- end of figures -->\n';
    assert.throws(() => pageOf('docs/tune.md', unknown, {}, TREE), /block "moon" that no code writes/);
    assert.throws(() => pageOf('docs/tune.md', 'nothing', {}, TREE), /has no block "claims", "tickets"/);
  });

  test('are shown by the table of their suite, for each kept summary', () => {
    const kept = readKept();
    for (const [name, { result }] of Object.entries(kept) as [string, Kept[string]][]) {
      const table = SUITES[name]?.table(result.rows) ?? '';
      assert.ok(table.split('\n').length > result.rows.length, name);
      assert.doesNotMatch(table, /undefined|NaN|\[object/, name);
    }
  });
});

test('a raw result becomes a summary, unless its product files changed while it ran or it is not of the bench', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-figures-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const raw = {
    ...{ suite: 'limits', at: '2026-01-01T00:00:00Z', commit: 'a'.repeat(40), product_hash: TREE },
    ...{
      command: 'npm run bench -- limits --against /tmp/some/where/old --json /tmp/x.json',
      machine: { cores: 2 },
      durability: { database: 'none' },
    },
    ...{ product_hash_at_end: TREE, result: { rows: [{ name: 'ipv4', bytes: 1 }], demands: [] } },
  };
  const file = (name: string, content: object): string => {
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, name), JSON.stringify(content));
    return join(dir, name);
  };
  const kept = keepRaw(file('raw.json', raw), dir);
  assert.equal(kept, 'bench/summaries/limits.json');
  assert.equal(
    JSON.parse(readFileSync(join(dir, kept), 'utf8')).command,
    'npm run bench -- limits --against ../old',
  );
  assert.throws(
    () => keepRaw(file('b.json', { ...raw, product_hash_at_end: 'e'.repeat(64) }), dir),
    /changed while/,
  );
  assert.throws(
    () => keepRaw(file('d.json', { ...raw, command: `${raw.command} --minutes 2` }), dir),
    /has a shortened row/,
  );
  assert.throws(
    () => keepRaw(file('c.json', { ...raw, suite: 'chaos' }), dir),
    /not a raw result of the bench/,
  );
});

test('rows of a suite are joined to the kept ones of the same product files, and never to others', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-figures-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const ran = (rows: object[], row: string, hash = TREE) => ({
    ...{ suite: 'whole', at: '2026-01-01T00:00:00Z', commit: 'a'.repeat(40), product_hash: hash },
    ...{ command: `npm run bench -- whole --row ${row} --against /tmp/old --keep`, machine: { cores: 2 } },
    ...{ durability: { fsync: 'on' }, product_hash_at_end: hash, result: { rows, demands: [] } },
  });
  const keep = (raw: object) =>
    JSON.parse(readFileSync(join(dir, keepResult(raw as never, dir)), 'utf8')) as Kept[string];
  const way = (name: string, of: string, rate: number) => ({ name, way: of, rate });
  keep(ran([way('large-64', 'sluice', 50), way('large-64', 'plain', 10)], 'large-64'));
  const { result, command } = keep(
    ran([way('small-64', 'sluice', 90), way('small-64', 'plain', 10)], 'small-64'),
  );
  assert.deepEqual(
    result.rows.map(({ name, rate }) => `${name} ${rate}`),
    ['large-64 50', 'large-64 10', 'small-64 90', 'small-64 10'],
  );
  assert.equal(result.demands[0]?.value, 5, 'the demands are of all rows');
  assert.equal(
    command,
    'npm run bench -- whole --row large-64 --against ../old --keep && npm run bench -- whole --row small-64 --against ../old --keep',
  );
  const again = keep(ran([way('large-64', 'sluice', 70), way('large-64', 'plain', 10)], 'large-64'));
  assert.deepEqual(
    again.result.rows.map(({ name, rate }) => `${name} ${rate}`),
    ['large-64 70', 'large-64 10', 'small-64 90', 'small-64 10'],
    'a row that is measured again is replaced, in its place',
  );
  assert.equal(again.command.split(' && ').length, 3, 'and each run leaves a trace');
  assert.match(
    again.note ?? '',
    /^Numbers of several runs: the first was on 2026-01-01, this was the last\.$/,
  );
  for (const [change, what] of [
    [{ machine: { cores: 4 } }, /of another machine/],
    [{ durability: { fsync: 'off' } }, /have other settings/],
    [{ suite: 'claims' }, /a part of claims: it would replace the numbers of the whole/],
  ] as const)
    assert.throws(() => keep({ ...ran([way('large-64', 'sluice', 1)], 'large-64'), ...change }), what);
  const other = keep(ran([way('small-64', 'sluice', 1)], 'small-64', 'e'.repeat(64)));
  assert.equal(other.result.rows.length, 1, 'rows of other product files are gone');
  assert.equal(other.note, undefined);
});

/** Says how fast something was, or how long it took, in numbers. */
const MEASURED =
  /\bp(?:50|99)\b[^|p]*\d|\d[\d,.]* ?(?:µs|ns)\b|\d[\d,.]* (?:claims|tickets|events|messages|rows|slots|answers|numbers|requests) (?:a|per) second|\d(?:\.\d+)? times (?:as (?:fast|many|much)|faster|the (?:CPU|rate|baseline))/;
/** Not measured: rules, loads that a program sends, and what a page is about. */
const RULES = [
  'p99 at most the greater of 3 times quiet and 250 ms',
  '15 claims and 15 events a second, each once',
  'above the greater of three times the quiet p99 and 250 ms',
];

const pages = (folder: string): string[] =>
  readdirSync(join(PROJECT, folder))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `${folder}/${file}`);

/** Decisions are left out: each is the record of its day, and has its date. */
const PROSE = [
  ...['README.md', 'ARCHITECTURE.md', 'bench/README.md', 'chaos/README.md'],
  ...['docs', 'docs/ops', 'docs/integrations'].flatMap(pages),
].filter((page) => page !== 'docs/reliability.md');

const strayIn = (text: string): string[] =>
  text
    .replace(/<!-- figures: [\s\S]*?<!-- end of figures -->/g, '')
    .split('\n')
    .filter((line) => MEASURED.test(line) && !RULES.some((rule) => line.includes(rule)));

test('no page tells a measured number outside of what is written from summaries', () => {
  for (const page of PROSE) assert.deepEqual(strayIn(read(page)), [], page);
  for (const line of [
    'One DB1 sells 20,000 slots a second.',
    'The p99 was 12 ms.',
    'a claim takes 578 µs',
    'It is 29 times as fast.',
  ])
    assert.deepEqual(strayIn(line), [line]);
  assert.deepEqual(strayIn('<!-- figures: x -->\nThe p99 was 12 ms.\n<!-- end of figures -->'), []);
});
