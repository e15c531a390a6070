import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CELL_CONTROLS } from '../../chaos/cells/controls.ts';
import { CONTROLS as CHAOS } from '../../chaos/controls/controls.ts';
import { CONTROLS as MODEL } from '../model/controls.ts';
import { BUGS } from '../mutation/bugs.ts';
import { absent, inTree, namedIn, rowsOf } from './named_tests.ts';

const PAGE = inTree('docs/bugs.md') ?? '';
const NUMBER = /^\d+ \|/;
/** The cells of a row: number, bug, found by, what finds it now, planted by. */
const rows = rowsOf(PAGE, NUMBER);

const PLANTED: Record<string, readonly string[]> = {
  chaos: CHAOS.map(({ name }) => name),
  cells: CELL_CONTROLS.map(({ name }) => name),
  model: Object.keys(MODEL),
  bugs: BUGS.map(({ name }) => name),
  test: ['its own control'],
};
/** How tests call the case in which they switch a guard off. */
const OWN_CONTROL =
  /control|without the guard|with the guard off|would be|would debit|the plain design loses/i;

/** "model fence-off" and such, of a cell. */
const plantedIn = (cell = ''): { by: string; name: string }[] =>
  cell
    .split(', ')
    .filter((text) => text.trim() !== '')
    .map((text) => ({ by: text.split(' ')[0] ?? '', name: text.slice(text.indexOf(' ') + 1).trim() }));
const unknownIn = (cell: string): string[] =>
  plantedIn(cell)
    .filter(({ by, name }) => !PLANTED[by]?.includes(name))
    .map(({ by, name }) => `${by} ${name}`);

describe('the page of bugs', () => {
  it('names for every bug a test that exists', () => {
    assert.ok(rows.length > 100, `${rows.length} bugs`);
    for (const [number, , , now] of rows) {
      assert.notEqual(namedIn(now).length, 0, `bug ${number} is found by nothing`);
      assert.deepEqual(absent(namedIn(now)), [], `bug ${number}`);
    }
  });

  it('says how each was found, and numbers them without a gap', () => {
    assert.deepEqual(
      rows.map(([number]) => Number(number)),
      rows.map((_, at) => at + 1),
    );
    for (const [number, bug, found] of rows) assert.ok(bug?.trim() && found?.trim(), `bug ${number}`);
  });

  it('says of each bug what plants it, and names only controls and patches that there are', () => {
    for (const [number, , , , planted = ''] of rows) {
      assert.notEqual(plantedIn(planted).length, 0, `bug ${number} is planted by nothing`);
      assert.deepEqual(unknownIn(planted), [], `bug ${number}`);
    }
    assert.deepEqual(unknownIn('model fence-off, chaos earthquake'), ['chaos earthquake']);
  });

  it('says of a test that it has its own control only where it has one', () => {
    const own = rows.filter(([, , , , planted]) => plantedIn(planted).some(({ by }) => by === 'test'));
    assert.ok(own.length > 10);
    for (const [number, , , now] of own)
      assert.ok(
        namedIn(now).some(({ file }) => OWN_CONTROL.test(inTree(file) ?? '')),
        `no test of bug ${number} switches its guard off`,
      );
  });

  it('has every patch that plants a bug', () => {
    const named = new Set(
      rows.flatMap(([, , , , planted]) => plantedIn(planted).map(({ by, name }) => `${by} ${name}`)),
    );
    assert.deepEqual(
      BUGS.map(({ name }) => `bugs ${name}`).filter((name) => !named.has(name)),
      [],
    );
  });

  it('leads from each patch to the test that the patch names', () => {
    for (const { name, test } of BUGS) {
      const row = rows.find(([, , , , planted]) =>
        plantedIn(planted).some((one) => one.name === name && one.by === 'bugs'),
      );
      assert.ok(
        namedIn(row?.[3]).some(({ file }) => file === test),
        `${name}: the page does not name ${test}`,
      );
    }
  });
});
