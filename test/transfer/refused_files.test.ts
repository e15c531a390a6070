import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { withClient } from '../../src/migrate/sql.ts';
import { runHere } from '../cli/support.ts';
import { claim, contentOf, type Pair, startWorld, type World } from './support.ts';

function countsOf(lines: readonly string[]): Record<string, number> {
  const rows: Record<string, number> = {};
  let current = '';
  for (const line of lines.map((text) => JSON.parse(text))) {
    if (Array.isArray(line)) rows[current] = (rows[current] ?? 0) + 1;
    else if ('table' in line) {
      current = `${line.database}.${line.table}`;
      rows[current] ??= 0;
    }
  }
  return rows;
}

describe('an import is refused, and changes nothing,', () => {
  let world: World;
  let target: Pair;
  let whole: Buffer;
  let before_: Record<string, string>[];

  const contents = async (pair: Pair) => [await contentOf(pair.DB1_URL), await contentOf(pair.DB2_URL)];

  before(async () => {
    world = await startWorld();
    const { code, stderr } = await runHere(['export', world.file], world.old);
    assert.equal(code, 0, stderr);
    whole = readFileSync(world.file);
    target = await world.newPair();
    before_ = await contents(target);
  });
  after(() => world.stop());

  const refused = async (bytes: Buffer | string, reason: RegExp, pair = target) => {
    const file = join(world.dir, 'bad.jsonl');
    writeFileSync(file, bytes);
    const { code, stderr } = await runHere(['import', file], pair);
    assert.equal(code, 1, stderr);
    assert.match(stderr, reason);
    assert.match(stderr, /^hint: ./m);
  };

  /** A file with another content, and the counts and the checksum of that. */
  const resealed = (change: (lines: string[]) => string[]): string => {
    const lines = change(whole.toString().trimEnd().split('\n'));
    lines.pop();
    const text = `${lines.join('\n')}\n`;
    const sha256 = createHash('sha256').update(text).digest('hex');
    return `${text}${JSON.stringify({ end: { rows: countsOf(lines), sha256 } })}\n`;
  };

  test('when the file is cut short: within a line, after a line, before its last byte', async () => {
    const lastLine = whole.lastIndexOf('\n', whole.length - 2) + 1;
    for (const length of [Math.floor(whole.length / 2), lastLine, whole.length - 1])
      await refused(whole.subarray(0, length), /damaged: .*cut short/);
    assert.deepEqual(await contents(target), before_);
  });

  test('when a byte of it was changed', async () => {
    const changed = Buffer.from(whole);
    const at = changed.indexOf('"opera"') + 1;
    changed[at] = 'X'.charCodeAt(0);
    await refused(changed, /damaged: its checksum differs/);
    assert.deepEqual(await contents(target), before_);
  });

  test('when its last line was changed, which no checksum covers', async () => {
    const lines = whole.toString().trimEnd().split('\n');
    const { end } = JSON.parse(lines.pop() ?? '');
    const ended = (value: unknown): string => `${lines.join('\n')}\n${JSON.stringify({ end: value })}\n`;
    const rows = { ...end.rows, 'db1.claims': end.rows['db1.claims'] - 1 };
    await refused(ended({ ...end, rows }), /damaged: it holds \d+ rows of db1\.claims, and its end says \d+/);
    for (const value of [null, 7, {}, { rows: null, sha256: end.sha256 }, { rows: end.rows }])
      await refused(ended(value), /damaged: its last line is not/);
    assert.deepEqual(await contents(target), before_);
  });

  test('when the file does not exist, or is a folder', async () => {
    for (const path of [join(world.dir, 'nowhere.jsonl'), world.dir]) {
      const { code, stderr } = await runHere(['import', path], target);
      assert.equal(code, 1);
      assert.match(stderr, /^error: .* cannot be read: .*\nhint: name a file that/);
    }
    const { code, stderr } = await runHere(['export', join(world.dir, 'nowhere', 'x.jsonl')], world.old);
    assert.equal(code, 1);
    assert.match(stderr, /^error: .* cannot be written: .*\nhint: name a file in a folder/);
  });

  test('when it is of another version, or not an export', async () => {
    await refused(
      whole.toString().replace('"version":1', '"version":2'),
      /version 2 of the format; this Sluice reads version 1/,
    );
    await refused('{"hello":1}\n', /not an export of Sluice/);
    await refused('hello\n', /damaged: line 1/);
    await refused('', /damaged/);
  });

  test('when it has a column or a table that this Sluice has not', async () => {
    const column = resealed((lines) =>
      lines.map((line) => line.replace('["claim_id","pool_id"', '["claim_id","colour"')),
    );
    await refused(column, /no column colour in claims/);
    await refused(
      resealed((lines) => lines.map((line) => line.replace('"table":"claims"', '"table":"dreams"'))),
      /no table dreams/,
    );
    assert.deepEqual(await contents(target), before_);
  });

  test('when one row of the last table breaks a rule of the database', async () => {
    const twice = resealed((lines) => {
      const at = lines.findLastIndex((line) => line.startsWith('['));
      return lines.toSpliced(at, 0, lines[at] ?? '');
    });
    const file = join(world.dir, 'bad.jsonl');
    writeFileSync(file, twice);
    assert.equal((await runHere(['import', file], target)).code, 1);
    assert.deepEqual(await contents(target), before_);
  });

  test('when one of the databases is in use, and says what is in it', async () => {
    const used = await world.newPair();
    await withClient(used.DB1_URL, async (db1) => {
      await db1.query(`insert into public.inventory_slots (pool_id) values ('opera')`);
      await claim(db1, 'ann', 'ann-1');
    });
    await refused(whole, /DB1 is not empty: slot_manifest 1, claims 1, messages 1 rows/, used);
    await refused(whole, /DB2 is not empty: .*confirmed_tickets 4/, {
      ...target,
      DB2_URL: world.old.DB2_URL,
    });
    assert.deepEqual(await contents(target), before_);
  });

  test('when a file lacks a column, that column gets its default and nothing is refused', async () => {
    const fewer = resealed((lines) => {
      const at = lines.findIndex((line) => line.includes('"table":"engine_config"'));
      const { columns, ...rest } = JSON.parse(lines[at] ?? '');
      const drop = columns.indexOf('max_retries');
      const less = (list: unknown[]) => JSON.stringify(list.toSpliced(drop, 1));
      const end = lines.findIndex((line, index) => index > at && !line.startsWith('['));
      return lines
        .with(at, JSON.stringify({ ...rest, columns: columns.toSpliced(drop, 1) }))
        .map((line, index) => (index > at && index < end ? less(JSON.parse(line)) : line));
    });
    const file = join(world.dir, 'fewer.jsonl');
    writeFileSync(file, fewer);
    const { code, stderr } = await runHere(['import', file], target);
    assert.equal(code, 0, stderr);
    const { rows } = await withClient(target.DB1_URL, (db1) =>
      db1.query('select pool_id, max_retries from public.engine_config order by 1'),
    );
    assert.deepEqual(rows, [
      { pool_id: 'gala', max_retries: 10 },
      { pool_id: 'opera', max_retries: 10 },
    ]);
  });
});
