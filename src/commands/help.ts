// The help pages, made of the declarations in grammar.ts.

import {
  type Action,
  type Command,
  commandAt,
  isGroup,
  type Option,
  type Place,
  placesOf,
} from './grammar.ts';

const WIDTH = 110;
const INDENT = '  ';
/** A longer label has its text on the line below. */
const MAX_LABEL = 28;
const EXITS = ['when all is done', 'when something is not'] as const;

/** `sluice <path> --help`. */
export function pageOf(place: Place): string {
  const { path, chain } = place;
  const command = commandAt(place);
  // A group's page is also that of the action it runs by default.
  const byDefault = isGroup(command) ? command.actions[command.default ?? ''] : undefined;
  const inherited = [...chain, byDefault].map((at) => at?.environment);
  const [done, notDone] = chain.findLast(({ exits }) => exits !== undefined)?.exits ?? EXITS;
  const leaves = actionsBelow(place);
  const sections = [
    `${usageOf(path, command)}`,
    fill(command.about),
    ...(isGroup(command) ? [actionsPart(place)] : []),
    optionsPart(command),
    part('Environment', Object.entries(Object.assign({}, ...inherited))),
    fill(`Exit code: 0 ${done}, 1 ${notDone}, 2 when the call was not understood.`),
    `Examples:\n${leaves.flatMap(([, { examples }]) => examples.map((line) => `${INDENT}${line}`)).join('\n')}`,
  ];
  return `${sections.filter(Boolean).join('\n\n')}\n`;
}

/** Name and summary, one a line. */
export function listOf(rows: readonly (readonly [label: string, text: string])[]): string {
  const widest = Math.max(...rows.map(([label]) => label.length).filter((length) => length <= MAX_LABEL), 0);
  return rows
    .map(([label, text]) => {
      const lines = wrap(text, WIDTH - widest - 2 * INDENT.length);
      const gap = `\n${' '.repeat(widest + 2 * INDENT.length)}`;
      const head = label.length <= widest ? label.padEnd(widest) + INDENT : `${label}${gap}`;
      return `${INDENT}${head}${lines.join(gap)}`;
    })
    .join('\n');
}

function usageOf(path: readonly string[], command: Command): string {
  const words = isGroup(command)
    ? [command.default === undefined ? '<action>' : '[action]']
    : [command.args, Object.keys(command.options ?? {}).length > 0 && '[options]'];
  return ['sluice', ...path, ...words].filter(Boolean).join(' ');
}

function actionsPart(place: Place): string {
  const rows = actionsBelow(place).map(
    ([name, { args, about }]) =>
      [[name, args].filter(Boolean).join(' '), about.split('\n')[0] ?? ''] as const,
  );
  const more = `${INDENT}sluice ${place.path.join(' ')} <action> --help   shows the options of an action`;
  return `Actions:\n${listOf(rows)}\n\n${more}`;
}

/** Each action with the words that lead to it from here. */
function actionsBelow(place: Place): [string, Action][] {
  return placesOf(place.path.at(-1) ?? '', commandAt(place)).flatMap((under): [string, Action][] => {
    const command = commandAt(under);
    return isGroup(command) ? [] : [[under.path.slice(1).join(' '), command]];
  });
}

function optionsPart(command: Command): string {
  if (!isGroup(command)) {
    const { choices, args = '', options = {} } = command;
    const words = choices === undefined ? '' : fill(`${args.split(' ')[0]} is one of: ${choices.join(', ')}`);
    const rows = Object.entries(options).map(
      ([name, option]) => [labelOf(name, option), textOf(option)] as const,
    );
    return [words, part('Options', rows)].filter(Boolean).join('\n\n');
  }
  const byDefault = command.actions[command.default ?? ''];
  return byDefault === undefined
    ? ''
    : [`Without an action: ${command.default}.`, optionsPart(byDefault)].filter(Boolean).join('\n\n');
}

function labelOf(name: string, { value, range, bare }: Option): string {
  const what = value ?? (range && 'N');
  if (what === undefined) return `--${name}`;
  return bare === undefined ? `--${name} ${what}` : `--${name}[=${what}]`;
}

function textOf({ about, range, bare, multiple, default: preset }: Option): string {
  const notes = [
    range && `${range[0]} to ${range[1]}`,
    preset !== undefined && `default ${preset}`,
    bare !== undefined && `without a value ${bare}`,
    multiple && 'can be repeated',
  ].filter(Boolean);
  return notes.length === 0 ? about : `${about} (${notes.join(', ')})`;
}

function part(title: string, rows: readonly (readonly [string, string])[]): string {
  return rows.length === 0 ? '' : `${title}:\n${listOf(rows)}`;
}

/** Paragraphs are wrapped; a block of indented lines keeps its shape. */
function fill(text: string): string {
  return text
    .split('\n\n')
    .map((block) => (block.startsWith(INDENT) ? block : wrap(block.replaceAll('\n', ' '), WIDTH).join('\n')))
    .join('\n\n');
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
