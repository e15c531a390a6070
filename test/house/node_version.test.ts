import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';

const read = (file: string) => readFileSync(join(PROJECT, file), 'utf8');

interface Locked {
  dev?: boolean;
  hasInstallScript?: boolean;
  engines?: { node?: string };
}

/** The first 20.x that a range takes, as its minor; infinite where it takes none. */
function firstMinorOf20(range: string): number {
  const minors = range.split('||').map((part) => {
    const [, sign, major = 0, minor = 0] = /^\s*(\^|>=)?\s*(\d+)(?:\.(\d+))?/.exec(part) ?? [];
    if (Number(major) === 20) return Number(minor);
    return sign === '>=' && Number(major) < 20 ? 0 : Number.POSITIVE_INFINITY;
  });
  return Math.min(...minors);
}

describe('the Node that it needs', () => {
  const { engines } = JSON.parse(read('package.json'));

  it('is the lowest that all packages take which are installed with it', () => {
    const locked: Record<string, Locked> = JSON.parse(read('package-lock.json')).packages;
    const asked = Object.entries(locked)
      .filter(([path, { dev }]) => path !== '' && !dev)
      .map(([, { engines: { node = '>=0' } = {} }]) => firstMinorOf20(node));
    assert.equal(engines.node, `>=20.${Math.max(...asked)}`);
    assert.deepEqual(
      ['>=18', '^18.19.0 || >=20.6.0', '>= 20.0.0', '^16 || ^18 || >=20', '>=22'].map(firstMinorOf20),
      [0, 6, 0, 0, Number.POSITIVE_INFINITY],
    );
  });

  for (const page of ['README.md', 'docs/start.md'])
    it(`is named in ${page}`, () => {
      assert.ok(read(page).includes(`Node ${engines.node.slice('>='.length)} or newer`));
    });
});

describe('scripts that packages run while they are installed', () => {
  // npm 11 warns of each that is not named.
  it('are named in package.json, each as allowed or not', () => {
    const locked: Record<string, Locked> = JSON.parse(read('package-lock.json')).packages;
    const withScripts = Object.entries(locked).filter(([, { hasInstallScript }]) => hasInstallScript);
    const { allowScripts } = JSON.parse(read('package.json'));
    assert.ok(withScripts.length > 0);
    assert.deepEqual(
      Object.keys(allowScripts).sort(),
      withScripts
        .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
        .sort(),
    );
    assert.equal(allowScripts['@scarf/scarf'], false, 'it reports installations to its maker');
  });
});
