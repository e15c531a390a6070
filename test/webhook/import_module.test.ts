// Handlers in TypeScript, as Node 20 gets them: through esbuild, in memory.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { PermanentError } from '#core/webhook/handlers.ts';
import { importModule } from '../../src/webhook/import_module.ts';

describe('a module in TypeScript', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-module-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const write = (files: Record<string, string>): void => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
  };
  const defaultOf = async (path: string) => (await importModule(join(folder, path))).default;

  it('imports its own files, packages, parts of Node and sluice/handlers, and nothing is written beside it', async () => {
    write({
      'node_modules/esm/package.json':
        '{ "type": "module", "exports": { "import": "./a.js", "require": "./b.cjs" } }',
      'node_modules/esm/a.js': 'export const esm = "esm";',
      'node_modules/esm/b.cjs': 'exports.esm = "wrong";',
      'node_modules/cjs/package.json': '{ "main": "c.js" }',
      'node_modules/cjs/c.js': 'module.exports = { cjs: __dirname };',
      'one.ts': 'export const one: string = "one";',
      'lib/two.ts': 'export const two: string = "two";',
      'handlers.ts': `
        import { sep } from 'node:path';
        import cjs from 'cjs';
        import { esm } from 'esm';
        import { type Handler, PermanentError } from 'sluice/handlers';
        import { one } from './one.ts';
        import { two } from './lib/two.js';
        const later: string = await Promise.resolve('later');
        const none: Handler[] = [];
        export default [one, two, esm, cjs.cjs, sep, later, new PermanentError('x').code, none.length, import.meta.url];`,
    });
    const before = readdirSync(folder, { recursive: true });
    const list = await defaultOf('handlers.ts');
    assert.deepEqual(list, [
      'one',
      'two',
      'esm',
      join(folder, 'node_modules', 'cjs'),
      '/',
      'later',
      new PermanentError('x').code,
      0,
      `file://${join(folder, 'handlers.ts')}`,
    ]);
    assert.deepEqual(readdirSync(folder, { recursive: true }), before);
  });

  it('may be CommonJS', async () => {
    write({
      'node_modules/both/package.json': '{ "exports": { "import": "./a.mjs", "require": "./b.js" } }',
      'node_modules/both/a.mjs': 'throw new Error("required, not imported");',
      'node_modules/both/b.js': 'module.exports = "required";',
      'handlers.cts': 'const both: string = require("both"); module.exports = [both, __dirname];',
    });
    assert.deepEqual(await defaultOf('handlers.cts'), ['required', folder]);
  });

  it('is named in a stack trace, not spelled out', async () => {
    write({
      'handlers.ts': 'export default () => { throw new Error("out of paper") };',
    });
    const thrower = (await defaultOf('handlers.ts')) as () => void;
    assert.throws(thrower, ({ stack }: Error) => {
      assert.match(stack ?? '', /\/handlers\.ts:\d+:\d+/);
      assert.doesNotMatch(stack ?? '', /base64/);
      return true;
    });
  });

  it('that is wrong is refused with its file, line and reason', async () => {
    write({ 'syntax.ts': '\nexport default (', 'package.ts': 'import "no-such-package";' });
    await assert.rejects(
      importModule(join(folder, 'syntax.ts')),
      /syntax\.ts:2:\d+: .*Unexpected end of file/,
    );
    await assert.rejects(importModule(join(folder, 'package.ts')), /Could not resolve "no-such-package"/);
  });
});
