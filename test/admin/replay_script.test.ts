import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { PROJECT } from '../support/dev.ts';

it('tools/webhook_replay.sh finds its own checkout from any folder and by way of a link', (t) => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-script-')));
  t.after(() => rmSync(dir, { recursive: true }));
  const root = join(dir, 'a checkout');
  for (const folder of ['tools', 'bin']) mkdirSync(join(root, folder), { recursive: true });
  const script = join(root, 'tools', 'webhook_replay.sh');
  copyFileSync(join(PROJECT, 'tools', 'webhook_replay.sh'), script);
  const echo = 'console.log(JSON.stringify([process.env.SLUICE_DIR, ...process.argv.slice(2)]))';
  writeFileSync(join(root, 'bin', 'sluice.js'), echo);
  symlinkSync(script, join(dir, 'replay'));
  const { SLUICE_DIR: _, ...env } = process.env;
  for (const path of [script, join(dir, 'replay')]) {
    const said = execFileSync(path, ['--event-id', 'a b', '--yes'], { cwd: '/', env, encoding: 'utf8' });
    const asked = ['webhooks', 'replay', '--event-id', 'a b', '--yes'];
    assert.deepEqual(JSON.parse(said), [join(root, '.sluice'), ...asked]);
  }
});
