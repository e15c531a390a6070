import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { loadAll } from '../../src/commands/all.ts';
import { completion } from '../../src/commands/completion.ts';
import { UsageError } from '../../src/commands/usage_error.ts';
import { placesOf, WORDS } from '../../src/commands/words.ts';
import { runHere } from './support.ts';

/** What bash would offer for these words, the last of which is being typed. */
function offered(script: string, words: string[]): string[] {
  const typed = words.map((word) => `'${word}'`).join(' ');
  const program = `${script}\nCOMP_WORDS=(${typed}); COMP_CWORD=${words.length - 1}; _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = spawnSync('bash', ['-c', program], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout.trim().split('\n').filter(Boolean);
}

const NOWHERE = { SLUICE_DIR: '/nonexistent' };
const scriptFor = async (shell: string) => (await runHere(['completion', shell], NOWHERE)).stdout;

function hasShell(name: string): boolean {
  return spawnSync(name, ['-c', 'true']).status === 0;
}

describe('sluice completion', () => {
  it('lets bash complete commands, actions and the options of each, and nothing that does not fit', async () => {
    const script = await scriptFor('bash');
    const cases: [string, string[]][] = [
      ['do', ['doctor']],
      ['dlq re', ['replay']],
      ['pools add', ['add-slots']],
      ['pools show ', ['--json', '--help']],
      ['pools show opening_night --', ['--json', '--help']],
      ['pools close opening_night --y', ['--yes']],
      ['pools create x --max-', ['--max-per-user', '--max-retries']],
      ['webhooks endpoints ro', ['rotate']],
      ['webhooks endpoints rotate stripe --o', ['--only']],
      ['webhooks list --o', []],
      ['work --on', ['--once']],
      ['work --slots', []],
      ['doctor ', ['--json', '--help']],
      ['dlq list --fix', []],
    ];
    for (const [typed, expected] of cases)
      assert.deepEqual(offered(script, ['sluice', ...typed.split(' ')]), expected, typed);
    assert.deepEqual(offered(script, ['sluice', '']), Object.keys(WORDS));
  });

  it('prints scripts that zsh and fish can read, where they are installed', async () => {
    for (const shell of ['zsh', 'fish']) {
      const script = await scriptFor(shell);
      assert.match(script, /webhooks endpoints rotate/);
      if (!hasShell(shell)) continue;
      const { status, stderr } = spawnSync(shell, ['-n'], { input: script, encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    }
  });

  it('knows no shell it was not made for', async () => {
    await assert.rejects(completion.run(['tcsh']), UsageError);
    await assert.rejects(completion.run([]), UsageError);
  });
});

describe('the words of the command line', () => {
  const optionsOf = (command: string) =>
    new Set(placesOf(WORDS).flatMap(({ path, offered }) => (path[0] === command ? offered : [])));

  it('are those of every command, and each option is on its page', async () => {
    const commands = await loadAll();
    assert.deepEqual(Object.keys(WORDS), Object.keys(commands));
    for (const [name, { usage }] of Object.entries(commands)) {
      const words = optionsOf(name);
      const onPage = new Set(usage.match(/(?<=[\s[(])--[a-z][a-z-]*[a-z]/g) ?? []);
      // How npx is to be called, and how to ask every command for its page.
      for (const foreign of ['--no-install', '--help']) onPage.delete(foreign);
      for (const option of onPage) {
        // A page may name what another command does about it.
        const isOthers = new RegExp(`sluice (?!${name})[a-z]+ [^"\n]*${option}`).test(usage);
        assert.ok(words.has(option) || isOthers, `${name} ${option} is on the page only`);
      }
      for (const option of [...words].filter((word) => word.startsWith('--') && word !== '--help'))
        assert.ok(onPage.has(option), `${name} ${option} is not on the page`);
    }
  });

  it('are understood by the parsers, every one of them', async () => {
    // The others would begin to work, or hand their words on to another program.
    const asked = placesOf(WORDS).filter(
      ({ path }) => !['dev', 'serve', 'reset', 'bench'].includes(path[0] ?? ''),
    );
    for (const { path, offered } of asked)
      for (const option of offered.filter((word) => word.startsWith('--') && word !== '--help')) {
        for (const words of [
          [...path, option],
          [...path, option, '1'],
        ]) {
          const { stderr } = await runHere(words, NOWHERE);
          assert.doesNotMatch(stderr, /Unknown option/, words.join(' '));
        }
      }
    assert.match((await runHere(['pools', 'list', '--nonsense'], NOWHERE)).stderr, /Unknown option/);
  });
});
