import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadAll } from '../../src/commands/all.ts';
import { completion } from '../../src/commands/completion.ts';
import { UsageError } from '../../src/commands/usage_error.ts';
import { placesOf, WORDS } from '../../src/commands/words.ts';
import { ensureDebianPackages } from '../pgtap/debian_packages.ts';
import { PROJECT } from '../support/dev.ts';
import { runHere } from './support.ts';

const NOWHERE = { SLUICE_DIR: '/nonexistent' };

/** What a shell prints for a program; the words after it are its arguments. */
function runShell(shell: string, args: string[], cwd: string): string {
  const { stdout, stderr, status } = spawnSync(shell, args, { encoding: 'utf8', cwd, timeout: 30_000 });
  assert.equal(status, 0, stderr);
  return stdout;
}

/** How each shell is asked: a program that prints "> <line>" and what would be offered for it, for each line. */
const PROGRAMS: Record<string, (script: string, lines: readonly string[]) => string[]> = {
  bash: (script, lines) => [
    '-c',
    `source "$1"; shift
    for line; do
      echo "> $line"; COMP_WORDS=($line); [[ $line == *' ' ]] && COMP_WORDS+=('')
      COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _sluice
      printf '%s\\n' "\${COMPREPLY[@]}"
    done`,
    'bash',
    script,
    ...lines,
  ],
  zsh: (script, lines) => ['-f', join(PROJECT, 'test', 'cli', 'offered.zsh'), script, ...lines],
  fish: (script, lines) => [
    '--no-config',
    '-c',
    // Where nothing begins with the word, fish by itself offers what has its letters somewhere.
    `source $argv[1]
    for line in $argv[2..-1]
      echo "> $line"; complete -C $line | string match -- (string split ' ' $line)[-1]'*'
    end`,
    script,
    ...lines,
  ],
};

/** What is typed after "sluice", and what is offered for the last word. */
const CASES: Record<string, readonly string[]> = {
  do: ['doctor'],
  be: ['bench'],
  'dlq re': ['replay'],
  'pools add': ['add-slots'],
  'pools show --': ['--json', '--help'],
  'pools show opening_night --': ['--json', '--help'],
  'pools close opening_night --y': ['--yes'],
  'pools create x --max-': ['--max-per-user', '--max-retries'],
  'webhooks endpoints ro': ['rotate'],
  'webhooks endpoints rotate stripe --o': ['--only'],
  'webhooks list --o': [],
  'work --on': ['--once'],
  'work --slots': [],
  'doctor --': ['--json', '--help'],
  'doctor ': ['--json', '--help'],
  'dlq list --fix': [],
  '': Object.keys(WORDS),
};

describe('sluice completion', () => {
  for (const [shell, program] of Object.entries(PROGRAMS))
    it(`lets ${shell} complete commands, actions and options, and nothing that does not fit`, async (t) => {
      const isHere = spawnSync(shell, ['-c', 'true']).status === 0;
      const reason = isHere ? undefined : await ensureDebianPackages([shell]);
      if (reason !== undefined) {
        t.skip(`no ${shell} here, so nobody presses Tab in it: ${reason}`);
        return;
      }
      const dir = mkdtempSync(join(tmpdir(), 'sluice-completion-'));
      t.after(() => rmSync(dir, { recursive: true }));
      const script = join(dir, 'script');
      writeFileSync(script, (await runHere(['completion', shell], NOWHERE)).stdout);
      // A file that would fit, too: words go first.
      writeFileSync(join(dir, 'bench.txt'), '');
      const lines = Object.keys(CASES).map((typed) => `sluice ${typed}`);
      const parts = runShell(shell, program(script, lines), dir).split(/^> /m).slice(1);
      const offered = parts.map((part) => part.trimEnd().split('\n').slice(1).filter(Boolean).sort());
      for (const [at, [typed, expected]] of Object.entries(CASES).entries())
        assert.deepEqual(offered[at], [...expected].sort(), typed);
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
