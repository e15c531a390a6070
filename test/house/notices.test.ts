import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { INSIDE, NOTICES, noticesOf } from '../../tools/notices.ts';
import { runCommand } from '../run/command.ts';
import { PROJECT } from '../support/dev.ts';

const MIT = (holder: string) =>
  `MIT License\n\nCopyright (c) 2020 ${holder}\n\nThe above copyright notice shall stay.\n`;

const LOCK = {
  '': { name: 'sluice' },
  'node_modules/pg': { version: '8.0.0', license: 'MIT' },
  'node_modules/pg/node_modules/split': { version: '2.0.0', license: 'ISC' },
  'node_modules/@tool/linux': { version: '3.0.0', license: 'MIT', optional: true, os: ['linux'] },
  'node_modules/@tool/mac': { version: '3.0.0', license: 'MIT', optional: true, os: ['darwin'] },
  'node_modules/only-mac': { version: '5.0.0', license: 'MIT', optional: true, os: ['darwin'] },
  'node_modules/pages': { version: '4.0.0', license: 'MIT', dev: true },
  'node_modules/linter': { version: '9.0.0', license: 'MIT', dev: true },
  'node_modules/our-client': { link: true },
  'packages/our-client': { version: '0.1.0' },
};

const TREE: Readonly<Record<string, string>> = {
  'package-lock.json': JSON.stringify({ packages: LOCK }),
  'console/parts/chart.tsx': "import { h } from 'pages/hooks';\nimport { x } from './x.ts';\n",
  'node_modules/pg/LICENSE': MIT('Ann'),
  'node_modules/pg/node_modules/split/package.json': '{ "author": "Bob <bob@example.com>" }',
  'node_modules/@tool/linux/LICENSE.md': MIT('Cy'),
  'node_modules/pages/LICENSE': MIT('Dee'),
};

/** Writes the tree with `changes` on top into a temporary folder; returns the folder. */
function plant(t: TestContext, changes: Readonly<Record<string, string>> = {}): string {
  const root = mkdtempSync(join(tmpdir(), 'sluice-notices-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries({ ...TREE, ...changes })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

describe('THIRD_PARTY_NOTICES', () => {
  const kept = existsSync(join(PROJECT, NOTICES)) ? readFileSync(join(PROJECT, NOTICES), 'utf8') : '';

  it('is what `npm run notices` writes', () => {
    assert.equal(kept, noticesOf(PROJECT));
  });

  it('names every dependency of package.json that is not our own', () => {
    const read = (file: string) => JSON.parse(readFileSync(join(PROJECT, file), 'utf8'));
    const { dependencies, optionalDependencies } = read('package.json');
    const { packages } = read('package-lock.json');
    const isNamed = (name: string) =>
      kept.includes(`\n${name} `) || kept.includes(`\n${name.replace(/\/.*/, '/*')} `);
    const others = Object.keys({ ...dependencies, ...optionalDependencies }).filter(
      (name) => packages[`node_modules/${name}`]?.link !== true,
    );
    assert.deepEqual(
      others.filter((name) => !isNamed(name)),
      [],
    );
  });

  it('names a holder for every package', () => {
    const entries = kept.split('\n\n').filter((part) => /^\S+ \S+\n {2}Licence: /.test(part));
    assert.ok(entries.length > 20, `only ${entries.length} packages`);
    assert.deepEqual(
      entries.filter((entry) => !/^ {2}(Copyright|Author:|Contains) /im.test(entry)),
      [],
    );
  });

  it('is in the packed package', async () => {
    const packed = await runCommand('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: PROJECT,
    });
    assert.ok(packed.output.includes(`"path": "${NOTICES}"`), packed.output);
  });

  it('tells of programs inside packages only where Sluice has the package', () => {
    for (const name of Object.keys(INSIDE)) assert.ok(kept.includes(`\n${name} `), `${name} is gone`);
  });
});

describe('noticesOf', () => {
  const entry = (text: string, title: string): string =>
    text.split('\n\n').find((part) => part.startsWith(`${title}\n`)) ?? `no ${title}`;

  it('takes the holder from the licence, and the author where there is none', (t) => {
    const text = noticesOf(plant(t));
    assert.match(entry(text, 'pg 8.0.0'), /Licence: MIT\n {2}Copyright \(c\) 2020 Ann$/);
    assert.match(entry(text, 'split 2.0.0'), /Licence: ISC\n {2}Author: Bob$/);
    assert.doesNotMatch(text, /bob@example.com|shall stay\.\n\npg/);
  });

  it('leaves out what is for development, and what is ours', (t) => {
    assert.doesNotMatch(noticesOf(plant(t)), /linter|our-client/);
  });

  it('gives what the console bundles with the whole licence, though it is installed for development', (t) => {
    const text = noticesOf(plant(t));
    assert.match(
      text,
      /pages 4\.0\.0\n {2}Licence: MIT\n {2}Copyright \(c\) 2020 Dee\n[\s\S]*The above copyright notice/,
    );
  });

  it('writes one entry for the builds of one program, on each platform the same', (t) => {
    const onLinux = plant(t);
    const onMac = plant(t, { 'node_modules/@tool/mac/LICENSE.md': MIT('Cy') });
    rmSync(join(onMac, 'node_modules/@tool/linux'), { recursive: true });
    assert.match(entry(noticesOf(onLinux), '@tool/* 3.0.0'), /linux, mac\n {2}Copyright \(c\) 2020 Cy$/);
    assert.equal(noticesOf(onMac), noticesOf(onLinux));
  });

  it('keeps what the file says of a package that this platform cannot install, while its version stays', (t) => {
    const onMac = plant(t, { 'node_modules/only-mac/LICENSE': MIT('Eve') });
    const written = noticesOf(onMac);
    assert.match(entry(written, 'only-mac 5.0.0'), /Eve/);
    assert.equal(noticesOf(plant(t, { [NOTICES]: written })), written);
    const newer = {
      ...LOCK,
      'node_modules/only-mac': { ...LOCK['node_modules/only-mac'], version: '5.0.1' },
    };
    const root = plant(t, { [NOTICES]: written, 'package-lock.json': JSON.stringify({ packages: newer }) });
    assert.doesNotMatch(noticesOf(root), /Eve/);
  });

  it('refuses a package without a licence', (t) => {
    const packages = { ...LOCK, 'node_modules/pg': { version: '8.0.0' } };
    const root = plant(t, { 'package-lock.json': JSON.stringify({ packages }) });
    assert.throws(() => noticesOf(root), /pg 8\.0\.0 names no licence/);
  });
});
