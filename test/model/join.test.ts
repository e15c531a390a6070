import assert from 'node:assert/strict';
import { test } from 'node:test';
import { emptyTally } from './engine.ts';
import { joinRuns, type ModelResult, summaryOf } from './join.ts';

const control = (name: string, violation: string | null) => ({
  ...{ name, seed: 1, histories: 1, violation, history: [], isDirected: false },
});
const run = (seed: number, change: Partial<ModelResult> = {}): ModelResult => ({
  ...{ ...emptyTally(), seeds: [seed], seconds: 10, controls: [] },
  ...{ histories: 100, commands: 1_000, longest: seed, answers: { claimed: seed }, ...change },
});

test('runs of several seeds are one: counts add up, a violation stays, a control is told as it was tried last', () => {
  const violation = { promise: 'I1', violation: 'lost' } as unknown as ModelResult['violations'][number];
  const both = joinRuns(
    run(1, { violations: [violation], controls: [control('a', null), control('b', 'seen')] }),
    run(2, { controls: [control('a', 'seen')] }),
  );
  const { seeds, histories, commands, longest, answers, seconds } = both;
  assert.deepEqual(
    { seeds, histories, commands, longest, answers, seconds },
    { seeds: [1, 2], histories: 200, commands: 2_000, longest: 2, answers: { claimed: 3 }, seconds: 20 },
  );
  assert.deepEqual(both.violations, [violation]);
  assert.deepEqual(
    both.controls.map(({ name, violation: seen }) => [name, seen]),
    [
      ['b', 'seen'],
      ['a', 'seen'],
    ],
  );
  assert.throws(() => joinRuns(both, run(2)), /seed 2 of these product files is kept already/);
});

test('git keeps how a long history begins, and a short one whole', () => {
  const steps = (many: number) => Array.from({ length: many }, (_, at) => `step ${at}`);
  const of = (many: number) => run(1, { controls: [{ ...control('a', 'seen'), history: steps(many) }] });
  const kept = (many: number) => summaryOf(of(many)).controls[0]?.history ?? [];
  assert.deepEqual(kept(10), steps(10));
  assert.deepEqual(kept(285), [...steps(10), 'and 275 steps more']);
});
