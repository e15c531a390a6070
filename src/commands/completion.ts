// `sluice completion`: what a shell offers after Tab. Taken from the help pages, so that it cannot know less or more than they.

import { parseArgs } from 'node:util';
import type { Command } from './command.ts';
import { UsageError } from './usage_error.ts';

const usage = `sluice completion bash|zsh|fish

Prints a script that completes commands, actions and options. Load it from your shell's start file.

Exit code: 0, or 2 for another shell.

Examples:
  source <(sluice completion bash)                                      # in ~/.bashrc
  source <(sluice completion zsh)                                       # in ~/.zshrc, after compinit
  sluice completion fish > ~/.config/fish/completions/sluice.fish
`;

/** What can follow `sluice <command>`: its actions and its options. */
export function wordsOf(page: string): string[] {
  const options = page.match(/--[a-z][a-z-]*[a-z]/g) ?? [];
  return [...new Set([...actionsOf(page), ...options, '--help'])];
}

/** From the first lines ("sluice dlq list|show …") and the list below them, which ends at the first heading. */
function actionsOf(page: string): string[] {
  const top = page.split(/^[A-Z].*:$/m, 1)[0] ?? '';
  const inUsage = [...top.matchAll(/^sluice [a-z]+ ((?:[a-z-]+\|)+[a-z-]+)/gm)].flatMap(([, list = '']) =>
    list.split('|'),
  );
  const inList = [...top.matchAll(/^ {2}([a-z][a-z-]*)(?= )/gm)].map(([, word = '']) => word);
  return [...inUsage, ...inList];
}

const SHELLS: Readonly<Record<string, (words: ReadonlyMap<string, readonly string[]>) => string>> = {
  bash: (words) => `_sluice() {
  local words
  case "\${COMP_WORDS[1]}" in
${cases(words, (list) => `words='${list}'`)}
  esac
  [ "$COMP_CWORD" -eq 1 ] && words='${[...words.keys()].join(' ')}'
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sluice sluice`,
  zsh: (words) => `#compdef sluice
_sluice() {
  if (( CURRENT == 2 )); then
    compadd -- ${[...words.keys()].join(' ')}
    return
  fi
  case "$words[2]" in
${cases(words, (list) => `compadd -- ${list}`)}
  esac
  _files
}
compdef _sluice sluice`,
  fish: (words) =>
    [...words]
      .flatMap(([command, list]) => [
        `complete -c sluice -f -n __fish_use_subcommand -a ${command}`,
        ...list.map((word) => fishLine(command, word)),
      ])
      .join('\n'),
};

function cases(words: ReadonlyMap<string, readonly string[]>, body: (list: string) => string): string {
  return [...words].map(([command, list]) => `    ${command}) ${body(list.join(' '))} ;;`).join('\n');
}

function fishLine(command: string, word: string): string {
  const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`;
  return `complete -c sluice -n '__fish_seen_subcommand_from ${command}' ${what}`;
}

export function createCompletion(loadCommands: () => Promise<Record<string, Command>>): Command {
  return {
    summary: 'print a completion script for bash, zsh or fish',
    usage,
    async run(args) {
      const { positionals } = parseArgs({ args, options: {}, allowPositionals: true });
      const [shell, ...rest] = positionals;
      const script = shell !== undefined && Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
      if (script === undefined || rest.length > 0)
        throw new UsageError(
          shell === undefined ? 'name a shell' : `no completion for ${positionals.join(' ')}`,
        );
      const words = Object.entries(await loadCommands()).map(
        ([name, { usage: page }]) => [name, wordsOf(page)] as const,
      );
      console.log(script(new Map(words)));
      return 0;
    },
  };
}
