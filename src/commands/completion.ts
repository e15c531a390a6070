// `sluice completion`: what a shell offers after Tab.

import { loadAll } from './all.ts';
import { action, type Command, commandAt, isGroup, placesOf } from './grammar.ts';

/** What can follow the words of a path: actions, first arguments that are known, options. */
export interface Offer {
  readonly path: readonly string[];
  readonly offered: readonly string[];
}

export function offersOf(commands: Readonly<Record<string, Command>>): Offer[] {
  return Object.entries(commands).flatMap(([name, command]) =>
    placesOf(name, command).map((place) => ({
      path: place.path,
      offered: [...wordsAt(commandAt(place)), '--help'],
    })),
  );
}

function wordsAt(command: Command): string[] {
  if (!isGroup(command))
    return [...(command.choices ?? []), ...Object.keys(command.options ?? {}).map((name) => `--${name}`)];
  const byDefault = command.actions[command.default ?? ''];
  return [...Object.keys(command.actions), ...(byDefault === undefined ? [] : wordsAt(byDefault))];
}

const SHELLS: Readonly<Record<string, (offers: readonly Offer[]) => string>> = {
  bash: (offers) => `_sluice() {
  local place='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place $word" in
${known(offers)}
    esac
  done
  local words=''
  case "$place" in
${cases(offers, (list) => `words='${list}'`)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sluice sluice`,
  zsh: (offers) => `#compdef sluice
_sluice() {
  local place='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
${known(offers)}
    esac
  done
  case "$place" in
${cases(offers, (list) => `compadd -- ${list} && return`)}
  esac
  _files
}
compdef _sluice sluice`,
  fish: (offers) => `function __sluice_place
  set -l place ''
  for word in (commandline -opc)[2..-1]
    switch "$place $word"
      case ${pathsOf(offers)
        .map((place) => `'${place}'`)
        .join(' ')}
        set place "$place $word"
    end
  end
  echo "$place"
end
complete -c sluice -f
${[{ path: [], offered: commandsOf(offers) }, ...offers]
  .map(
    ({ path, offered }) =>
      `complete -c sluice -n 'test (__sluice_place) = "${joined(path)}"' -a '${offered.join(' ')}'`,
  )
  .join('\n')}`,
};

const joined = (path: readonly string[]): string => path.map((word) => ` ${word}`).join('');

function pathsOf(offers: readonly Offer[]): string[] {
  return offers.map(({ path }) => joined(path));
}

function commandsOf(offers: readonly Offer[]): string[] {
  return offers.filter(({ path }) => path.length === 1).map(({ path }) => path[0] ?? '');
}

/** A word that leads on is remembered; all others, such as the name of a pool, are passed over. */
function known(offers: readonly Offer[]): string {
  const patterns = pathsOf(offers).map((place) => `'${place}'`);
  return `      ${patterns.join('|')}) place="$place $word" ;;`;
}

function cases(offers: readonly Offer[], body: (list: string) => string): string {
  const all = [{ path: [], offered: commandsOf(offers) }, ...offers];
  return all.map(({ path, offered }) => `    '${joined(path)}') ${body(offered.join(' '))} ;;`).join('\n');
}

export const command = action({
  about: `Print a script that completes commands, actions and options of the word "sluice"

Load it from your shell's start file. Where only \`npx sluice\` is there, give it that name first:

  sluice() { npx --no-install sluice "$@"; }`,
  args: '<shell>',
  choices: Object.keys(SHELLS),
  examples: [
    'source <(sluice completion bash)                                      # in ~/.bashrc',
    'source <(sluice completion zsh)                                       # in ~/.zshrc, after compinit',
    'sluice completion fish > ~/.config/fish/completions/sluice.fish',
  ],
  async run(_, [shell]) {
    console.log(SHELLS[shell]?.(offersOf(await loadAll())));
    return 0;
  },
});
