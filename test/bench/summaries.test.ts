import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { git as gitIn, productHash } from '../../bench/provenance.ts';
import {
  beginRun,
  keepJoined,
  keepSummary,
  MAX_SUMMARY_BYTES,
  type Raw,
  readRaw,
  refuseKept,
  type Summary,
  writeRaw,
} from '../../bench/summaries.ts';
import { PROJECT } from '../support/dev.ts';
import { bench } from './support.ts';

const FOLDERS = ['bench', 'chaos'];

function git(dir: string, ...args: string[]): string {
  const said = gitIn(dir, args);
  assert.ok(said !== undefined, `git ${args.join(' ')}`);
  return said;
}

describe('what git keeps of runs', () => {
  const kept = FOLDERS.flatMap((folder) =>
    readdirSync(join(PROJECT, folder, 'summaries')).map((file) => ({
      name: file.replace(/\.json$/, ''),
      text: readFileSync(join(PROJECT, folder, 'summaries', file), 'utf8'),
    })),
  );

  test('leaves out raw results: results/ is ignored, and no tracked file is in a folder of that name', () => {
    const tracked = git(PROJECT, 'ls-files').split('\n');
    assert.deepEqual(
      tracked.filter((path) => /(^|\/)results\//.test(path)),
      [],
    );
    assert.equal(git(PROJECT, 'check-ignore', 'results/bench/x.json').trim(), 'results/bench/x.json');
  });

  test('is one summary a suite, under 30 KB, that says where it comes from', () => {
    assert.ok(kept.length > 0);
    const names = kept.map(({ name }) => name);
    assert.deepEqual(names, [...new Set(names)], 'two summaries of one suite');
    for (const { name, text } of kept) {
      assert.ok(Buffer.byteLength(text) < MAX_SUMMARY_BYTES, `${name}: ${Buffer.byteLength(text)} bytes`);
      const summary: Summary = JSON.parse(text);
      assert.equal(summary.suite, name);
      assert.match(summary.product_hash, /^[0-9a-f]{64}$/, name);
      assert.match(summary.commit, /^[0-9a-f]{40}( with changes)?$/, name);
      assert.ok(!Number.isNaN(Date.parse(summary.at)), name);
      assert.match(summary.command, /^npm /, name);
      for (const key of ['machine', 'durability', 'result'] as const)
        assert.ok(Object.keys(summary[key]).length > 0, `${name} ${key}`);
    }
  });
});

describe('a run and its product files', () => {
  let dir: string;
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  };
  const durability = { fsync: 'on' };

  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-summaries-'));
    git(dir, 'init', '-q');
    write('src/a.ts', 'a');
    write('db1/supabase/tests/a.test.sql', 'a');
    write('docs/a.md', 'a');
    write('src/README.md', 'a');
    git(dir, 'add', '.');
    git(dir, '-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit', '-qm', 'a');
  });
  after(() => rmSync(dir, { recursive: true }));

  test('the hash is the same for a clean tree and its commit, and for changed tests and docs', () => {
    const hash = productHash(dir);
    assert.equal(productHash(dir, 'HEAD'), hash);
    write('db1/supabase/tests/a.test.sql', 'b');
    write('docs/a.md', 'b');
    write('src/README.md', 'b');
    assert.equal(productHash(dir), hash);
  });

  test('the hash is another for a changed, a new and a deleted product file', () => {
    const hash = productHash(dir);
    write('src/a.ts', 'b');
    const changed = productHash(dir);
    write('src/a.ts', 'a');
    write('src/b.ts', 'b');
    git(dir, 'add', 'src/b.ts');
    const added = productHash(dir);
    rmSync(join(dir, 'src/b.ts'));
    assert.equal(productHash(dir), hash, 'a deleted file still counts');
    assert.equal(new Set([hash, changed, added]).size, 3);
  });

  test('a raw result goes to results/, and its summary says the same with fewer digits', () => {
    const raw = beginRun('demo', 'npm run demo', dir).end(durability, { rows: [{ rate: 1234.56789, n: 7 }] });
    const file = writeRaw('bench', raw, 'demo', dir);
    assert.match(file, /^results\/bench\/\d{4}-\d\d-\d\dT\d{4}-demo\.json$/);
    assert.deepEqual(readRaw('bench', 'demo', dir), [raw]);
    assert.deepEqual(readRaw('bench', 'other', dir), []);
    const kept = keepSummary('bench', raw, raw.result, dir);
    assert.equal(kept, 'bench/summaries/demo.json');
    const { product_hash_at_end: _, ...origin } = raw;
    assert.deepEqual(JSON.parse(readFileSync(join(dir, kept), 'utf8')), {
      ...origin,
      result: { rows: [{ rate: 1234.6, n: 7 }] },
    });
  });

  test('a run is joined to the kept one of the same product files, and takes the place of others', () => {
    type Seeds = { seeds: number[] };
    const ran = (...seeds: number[]) =>
      beginRun('long', `npm run long ${seeds}`, dir).end(durability, { seeds });
    const keep = (raw: Raw<Seeds>): Summary<Seeds> => {
      const joined = (kept: Seeds, added: Seeds): Seeds => {
        refuseKept(kept.seeds, ...added.seeds);
        return { seeds: [...kept.seeds, ...added.seeds] };
      };
      return JSON.parse(readFileSync(join(dir, keepJoined('chaos', raw, joined, dir)), 'utf8'));
    };
    assert.deepEqual(keep(ran(1)).result.seeds, [1]);
    const both = keep(ran(2, 3));
    assert.deepEqual(both.result.seeds, [1, 2, 3]);
    assert.equal(both.command, 'npm run long 1 && npm run long 2,3');
    assert.match(
      both.note ?? '',
      /^Numbers of several runs: the first was on \d{4}-\d\d-\d\d, this was the last\.$/,
    );
    assert.throws(() => keep(ran(4, 2)), /seed 2 of these product files is kept already/);
    assert.throws(() => keep({ ...ran(4), machine: { cores: 3 } }), /are of another machine/);
    assert.throws(() => keep({ ...ran(4), durability: { fsync: 'off' } }), /have other settings/);
    write('src/a.ts', 'another');
    const other = keep(ran(1));
    assert.deepEqual([other.result.seeds, other.note], [[1], undefined]);
    write('src/a.ts', 'a');
  });

  test('no summary is kept where the product files changed while the suite ran, or where it is too long', () => {
    const run = beginRun('changing', 'npm run changing', dir);
    write('src/a.ts', 'c');
    const raw = run.end(durability, {});
    assert.throws(() => keepSummary('bench', raw, {}, dir), /product files changed while changing ran/);
    const long = beginRun('long', 'npm run long', dir).end(durability, {});
    const text = 'x'.repeat(MAX_SUMMARY_BYTES);
    assert.throws(() => keepSummary('bench', long, { text }, dir), /summary of long has \d+ bytes/);
    for (const name of ['changing', 'long'])
      assert.ok(!existsSync(join(dir, `bench/summaries/${name}.json`)), name);
  });
});

test('a run outside a clone works and is not kept', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-no-clone-'));
  try {
    const raw = beginRun('demo', 'npm run demo', dir).end({}, {});
    assert.deepEqual([raw.commit, raw.product_hash], ['unknown', 'unknown']);
    assert.throws(() => keepSummary('bench', raw, {}, dir), /git does not say which files demo ran on/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('a quick run is not kept', () => {
  const { status, stderr } = bench('claims', '--quick', '--keep');
  assert.equal(status, 2, stderr);
  assert.match(stderr, /a quick run proves nothing about speed/);
});
