import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { CORE, LEFT_OUT, PARTS, type Part } from './parts.ts';
import { joinParts, scoreOf } from './score.ts';

const PART: Part = { name: 'part', sources: ['a.ts', 'b.ts'], tests: [] };
type Status = Parameters<typeof scoreOf>[1][number]['status'];
const results = (counts: Partial<Record<Status, number>>) =>
  Object.entries(counts).flatMap(([status, count]) =>
    Array.from({ length: count }, () => ({ status: status as Status })),
  );

describe('a mutation score', () => {
  it('is the share that was noticed, a test that came to no end included', () => {
    assert.deepEqual(scoreOf(PART, results({ Killed: 6, Timeout: 1, Survived: 2, NoCoverage: 1 })), {
      name: 'part',
      files: 2,
      mutants: 10,
      killed: 6,
      timeout: 1,
      survived: 3,
      uncovered: 1,
      errors: 0,
      score: 70,
    });
  });

  it('is not helped by what could not be judged, nor by rounding', () => {
    const { mutants, errors, score } = scoreOf(
      PART,
      results({ Killed: 1_999, Survived: 1, RuntimeError: 5 }),
    );
    assert.deepEqual([mutants, errors, score], [2_000, 5, 99.9]);
  });

  it('of a part that is measured again takes the place of the kept one, beside the other parts', () => {
    const part = (name: string, killed: number) => scoreOf({ ...PART, name }, results({ Killed: killed }));
    const { parts } = joinParts({ parts: [part('a', 1), part('b', 2)] }, { parts: [part('b', 3)] });
    assert.deepEqual(
      parts.map(({ name, killed }) => `${name} ${killed}`),
      ['a 1', 'b 3'],
    );
  });

  it('is 0 for tests that notice nothing, and where there is nothing to notice', () => {
    assert.equal(scoreOf(PART, results({ Survived: 5 })).score, 0);
    assert.equal(scoreOf(PART, []).score, 0);
  });
});

describe('the parts that are mutated', () => {
  it('name sources and tests that are there', () => {
    const named = [...PARTS.flatMap(({ sources, tests }) => [...sources, ...tests]), ...LEFT_OUT];
    assert.deepEqual(
      named.filter((path) => !existsSync(join(PROJECT_ROOT, path))),
      [],
    );
  });

  it('have every source of the bridge, the webhooks and the calls, but for those left out', () => {
    const known = new Set([...PARTS.flatMap(({ sources }) => sources), ...LEFT_OUT]);
    const there = ['bridge', 'webhook', 'webhook/providers', 'calls'].flatMap((folder) =>
      readdirSync(join(PROJECT_ROOT, CORE, folder))
        .filter((name) => name.endsWith('.ts'))
        .map((name) => `${CORE}/${folder}/${name}`),
    );
    assert.ok(there.length > 40, String(there.length));
    assert.deepEqual(
      there.filter((path) => !known.has(path)),
      [],
    );
  });
});
