import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { COMMANDS, loadAll } from '../../src/commands/all.ts';
import {
  action,
  commandAt,
  find,
  isGroup,
  type Place,
  parse,
  placesOf,
  UsageError,
} from '../../src/commands/grammar.ts';
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

/** What the shell offers for the last word of each line, sorted. */
async function offeredBy(t: TestContext, shell: string, lines: readonly string[]): Promise<string[][]> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-completion-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const script = join(dir, 'script');
  writeFileSync(script, (await runHere(['completion', shell], NOWHERE)).stdout);
  // A file that would fit, too: words go first.
  writeFileSync(join(dir, 'bench.txt'), '');
  const parts = runShell(shell, PROGRAMS[shell]?.(script, lines) ?? [], dir)
    .split(/^> /m)
    .slice(1);
  return parts.map((part) => part.trimEnd().split('\n').slice(1).filter(Boolean).sort());
}

/** What is typed after "sluice", and what is offered for the last word. */
const CASES: Record<string, readonly string[]> = {
  do: ['doctor'],
  be: ['bench'],
  'dlq re': ['replay'],
  'pools add': ['add-slots'],
  'pools show --': ['--json', '--help'],
  'pools show opening_night --': ['--json', '--help'],
  'pools close opening_night --y': ['--yes'],
  'pools create x --max-': ['--max-per-address', '--max-per-user', '--max-quantity', '--max-retries'],
  'webhooks endpoints ro': ['rotate'],
  'webhooks endpoints rotate stripe --o': ['--only'],
  'webhooks list --o': [],
  'webhooks endpoints --': ['--json', '--help'],
  'completion f': ['fish'],
  'bench --quick cl': ['claims'],
  'work --on': ['--once'],
  'work --slots': [],
  'doctor --': ['--json', '--help'],
  'doctor ': ['--json', '--help'],
  'dlq list --fix': [],
  '': Object.keys(COMMANDS),
};

describe('sluice completion', () => {
  for (const shell of Object.keys(PROGRAMS))
    it(`lets ${shell} complete commands, actions and options, and nothing that does not fit`, async (t) => {
      const isHere = spawnSync(shell, ['-c', 'true']).status === 0;
      const reason = isHere ? undefined : await ensureDebianPackages([shell]);
      if (reason !== undefined) {
        t.skip(`no ${shell} here to press Tab in: ${reason}`);
        return;
      }
      const offered = await offeredBy(
        t,
        shell,
        Object.keys(CASES).map((typed) => `sluice ${typed}`),
      );
      for (const [at, [typed, expected]] of Object.entries(CASES).entries())
        assert.deepEqual(offered[at], [...expected].sort(), typed);
    });

  it('is refused for a shell it was not made for', async () => {
    for (const words of [['tcsh'], []])
      assert.equal((await runHere(['completion', ...words], NOWHERE)).code, 2);
  });
});

describe('an option that a parser accepts', () => {
  it('is on the help page of its action and offered by bash, and no other option is', async (t) => {
    const places = Object.entries(await loadAll()).flatMap(([name, command]) => placesOf(name, command));
    const declared = places
      .map(commandAt)
      .flatMap((at) => (isGroup(at) ? [] : Object.keys(at.options ?? {})));
    const anywhere = [...new Set(declared)].map((name) => `--${name}`);
    assert.ok(places.length > 40 && anywhere.length > 50, 'the walk has lost the commands');
    const offered = await offeredBy(
      t,
      'bash',
      places.map(({ path }) => `sluice ${path.join(' ')} --`),
    );
    for (const [at, place] of places.entries()) {
      const where = place.path.join(' ');
      const accepted = anywhere.filter((option) => accepts(place, option)).sort();
      const { stdout: page } = await runHere([...place.path, '--help'], NOWHERE);
      const [, part = ''] = /^Options:\n((?: .*\n)+)/m.exec(page) ?? [];
      const shown = [...part.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, option]) => option);
      assert.deepEqual(shown.sort(), accepted, `the page of ${where}`);
      assert.deepEqual(offered[at], [...accepted, '--help'].sort(), `completion of ${where}`);
    }
  });

  it('is told from one that the parser refuses', () => {
    const place: Place = {
      path: ['x'],
      chain: [action({ about: 'X', options: { json: { about: 'j' } }, examples: [], run: async () => 0 })],
    };
    assert.deepEqual([accepts(place, '--json'), accepts(place, '--yes')], [true, false]);
  });
});

/** Whether the parser takes the option, with or without a value; other complaints are about other things. */
function accepts(place: Place, option: string): boolean {
  const { place: found, rest } = find(place.path[0] ?? '', place.chain[0], [...place.path.slice(1), option]);
  assert.deepEqual(found.path, place.path);
  const at = commandAt(found);
  const chosen = isGroup(at) ? at.actions[at.default ?? ''] : at;
  if (chosen === undefined || isGroup(chosen)) return false;
  try {
    parse(chosen, rest);
    return true;
  } catch (error) {
    assert.ok(error instanceof UsageError);
    return !error.message.startsWith('Unknown option');
  }
}
