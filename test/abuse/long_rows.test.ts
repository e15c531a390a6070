// A long row of one character must cost as much as its length. Each of these takes milliseconds here, and took minutes where the
// work grew with the square of the length: no other request of the process was answered meanwhile.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { PROJECT_ROOT } from '../../src/project_root.ts';

const CHARS = 1_000_000;
/** It loads the modules as well, on a busy machine. */
const LIMIT_MS = 60_000;
const CORE = './db1/supabase/functions/_shared';

/** In a process of its own, because work without an end can only be ended from outside. */
function print(imports: string, expression: string): string {
  const code = `${imports}; const row = (text) => text.repeat(${CHARS}); process.stdout.write(String(${expression}))`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', code];
  const { stdout, stderr, signal } = spawnSync(process.execPath, args, {
    ...{ cwd: PROJECT_ROOT, timeout: LIMIT_MS, encoding: 'utf8' },
    ...{ killSignal: 'SIGKILL' },
  });
  assert.equal(signal, null, 'it did not end');
  assert.notEqual(stdout, '', stderr);
  return stdout;
}

describe('a row of a million', () => {
  it('zeros in a number is refused', () => {
    const imports = `import { isExactNumber } from '${CORE}/json.ts'`;
    assert.equal(print(imports, "isExactNumber('1.' + row('0') + '1')"), 'false');
  });

  it('slashes in a path leads nowhere', () => {
    const imports = "import { notFoundPage } from './src/console/not_found.ts'";
    const request = "{ method: 'GET', path: row('/') + 'x', headers: { accept: 'text/html' } }";
    assert.equal(print(imports, `notFoundPage([], {})(${request}).status`), '404');
  });

  it('equal names in a query has every spelling that Twilio may have signed', () => {
    const imports = `import { signedUrls } from '${CORE}/webhook/providers/twilio_url.ts'`;
    assert.equal(print(imports, "signedUrls('https://a.example/?a' + row('&a')).length"), '4');
  });
});
