import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CLAIMS } from '../../tools/machines/claims.ts';
import { compare } from '../../tools/machines/machine.ts';
import { DIAGRAMS, withDiagram } from '../../tools/machines.ts';
import { PROJECT } from '../support/dev.ts';

for (const machine of DIAGRAMS)
  test(`${machine.page} draws what the list of ${machine.mark ?? machine.table} says`, () => {
    const page = readFileSync(join(PROJECT, machine.page), 'utf8');
    assert.equal(page, withDiagram(page, machine), 'run: npm run machines');
    const [first, ...rest] = machine.transitions;
    assert(first !== undefined);
    assert.notEqual(
      page,
      withDiagram(page, { ...machine, transitions: rest }),
      'a list with less draws less',
    );
  });

test('a page without its marks is refused', () => {
  assert.throws(() => withDiagram('# Operate', CLAIMS), /docs\/operate\.md has no <!-- public\.claims/);
});

test('reports a step that is not on the list, and a listed step that was never taken', () => {
  const machine = {
    ...CLAIMS,
    transitions: [{ from: null, to: 'queued', event: 'claimed', by: ['a', 'b'] }],
  };
  const taken = [
    { from: null, to: 'queued', by: 'a' },
    { from: 'released', to: 'queued', by: '' },
  ];
  assert.deepEqual(compare(machine, taken), {
    unknown: ['released → queued by a plain statement'],
    untaken: ['(new) → queued by b'],
  });
});
