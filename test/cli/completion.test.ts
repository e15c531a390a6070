import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import type { Command } from '../../src/commands/command.ts';
import { createCompletion, wordsOf } from '../../src/commands/completion.ts';
import { UsageError } from '../../src/commands/usage_error.ts';
import { sluice } from '../work/support.ts';

/** What bash would offer for these words, the last of which is being typed. */
function offered(script: string, words: string[]): string[] {
  const typed = words.map((word) => `'${word}'`).join(' ');
  const program = `${script}\nCOMP_WORDS=(${typed}); COMP_CWORD=${words.length - 1}; _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = spawnSync('bash', ['-c', program], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout.trim().split('\n').filter(Boolean);
}

function hasShell(name: string): boolean {
  return spawnSync(name, ['-c', 'true']).status === 0;
}

describe('sluice completion', () => {
  it('lets bash complete commands, actions and options, and nothing that does not fit', async () => {
    const { code, stdout: script } = await sluice(['completion', 'bash'], {}).ended;
    assert.equal(code, 0);
    assert.deepEqual(offered(script, ['sluice', 'do']), ['doctor']);
    assert.ok(offered(script, ['sluice', '']).length >= 12);
    assert.deepEqual(offered(script, ['sluice', 'dlq', 're']), ['replay']);
    assert.deepEqual(offered(script, ['sluice', 'pools', 'add']), ['add-slots']);
    assert.deepEqual(offered(script, ['sluice', 'work', '--on']), ['--once']);
    assert.deepEqual(offered(script, ['sluice', 'work', '--slots']), []);
  });

  it('prints scripts that zsh and fish can read, where they are installed', async () => {
    for (const shell of ['zsh', 'fish']) {
      const { code, stdout } = await sluice(['completion', shell], {}).ended;
      assert.equal(code, 0);
      assert.match(stdout, /sluice/);
      if (!hasShell(shell)) continue;
      const { status, stderr } = spawnSync(shell, ['-n'], { input: stdout, encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    }
  });

  it('knows what the page of a command says, and no shell it was not made for', async (t) => {
    const later: Command = { summary: '', usage: 'sluice later now|never [--fast]\n', run: async () => 0 };
    const completion = createCompletion(async () => ({ later }));
    const said: string[] = [];
    t.mock.method(console, 'log', (line: string) => said.push(line));
    assert.equal(await completion.run(['bash']), 0);
    t.mock.restoreAll();
    assert.deepEqual(offered(said.join('\n'), ['sluice', 'later', '']), ['now', 'never', '--fast', '--help']);
    await assert.rejects(completion.run(['tcsh']), UsageError);
    await assert.rejects(completion.run([]), UsageError);
  });

  it('takes actions from the top of a page only', () => {
    const page =
      'sluice x <action>\n\n  go    away\n\nFilters:\n  not an action\n\nExamples:\n  sluice x go --far\n';
    assert.deepEqual(wordsOf(page), ['go', '--far', '--help']);
  });
});
