// `sluice completion`: what a shell offers after Tab.

import { parseArgs } from 'node:util';
import type { Command } from './command.ts';
import { UsageError } from './usage_error.ts';
import { type Place, placesOf, WORDS } from './words.ts';

const usage = `sluice completion bash|zsh|fish

Prints a script that completes commands, actions and options of the word "sluice". Load it from your shell's start file.
Where only \`npx sluice\` is there, give it that name first: sluice() { npx --no-install sluice "$@"; }

Exit code: 0, or 2 for another shell.

Examples:
  source <(sluice completion bash)                                      # in ~/.bashrc
  source <(sluice completion zsh)                                       # in ~/.zshrc, after compinit
  sluice completion fish > ~/.config/fish/completions/sluice.fish
`;

const SHELLS: Readonly<Record<string, (places: readonly Place[]) => string>> = {
  bash: (places) => `_sluice() {
  local place='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place $word" in
${known(places)}
    esac
  done
  local words=''
  case "$place" in
${cases(places, (list) => `words='${list}'`)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sluice sluice`,
  zsh: (places) => `#compdef sluice
_sluice() {
  local place='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
${known(places)}
    esac
  done
  case "$place" in
${cases(places, (list) => `compadd -- ${list} && return`)}
  esac
  _files
}
compdef _sluice sluice`,
  fish: (places) => `function __sluice_place
  set -l place ''
  for word in (commandline -opc)[2..-1]
    switch "$place $word"
      case ${placesBelow(places)
        .map((place) => `'${place}'`)
        .join(' ')}
        set place "$place $word"
    end
  end
  echo "$place"
end
complete -c sluice -f
${[{ path: [], offered: commandsOf(places) }, ...places]
  .map(
    ({ path, offered }) =>
      `complete -c sluice -n 'test (__sluice_place) = "${joined(path)}"' -a '${offered.join(' ')}'`,
  )
  .join('\n')}`,
};

const joined = (path: readonly string[]): string => path.map((word) => ` ${word}`).join('');

function placesBelow(places: readonly Place[]): string[] {
  return places.map(({ path }) => joined(path));
}

function commandsOf(places: readonly Place[]): string[] {
  return places.filter(({ path }) => path.length === 1).map(({ path }) => path[0] ?? '');
}

/** A word that leads on is remembered; all others, such as the name of a pool, are passed over. */
function known(places: readonly Place[]): string {
  const patterns = placesBelow(places).map((place) => `'${place}'`);
  return `      ${patterns.join('|')}) place="$place $word" ;;`;
}

function cases(places: readonly Place[], body: (list: string) => string): string {
  const all = [{ path: [], offered: commandsOf(places) }, ...places];
  return all.map(({ path, offered }) => `    '${joined(path)}') ${body(offered.join(' '))} ;;`).join('\n');
}

async function run(args: string[]): Promise<number> {
  const { positionals } = parseArgs({ args, options: {}, allowPositionals: true });
  const [shell, ...rest] = positionals;
  const script = shell !== undefined && Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (script === undefined || rest.length > 0)
    throw new UsageError(shell === undefined ? 'name a shell' : `no completion for ${positionals.join(' ')}`);
  console.log(script(placesOf(WORDS)));
  return 0;
}

export const completion: Command = { summary: 'print a completion script for bash, zsh or fish', usage, run };
