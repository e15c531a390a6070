// The grammar of the command line. A command declares its actions, options and arguments once. The parser (here), the help
// pages (help.ts) and the completion scripts (completion.ts) read that declaration, so they cannot disagree.

import { parseArgs } from 'node:util';

/** An option without `value` and `range` is a flag. */
export interface Option {
  readonly about: string;
  /** How help names the value, such as ID or yes|no. */
  readonly value?: string;
  /** The words that the value can be. */
  readonly choices?: readonly string[];
  /** The value is a whole number between these two, both included. */
  readonly range?: readonly [least: number, most: number];
  readonly default?: string | number;
  /** The value when it is left out: `--outage` means `--outage=10`. Such an option takes a value only after `=`. */
  readonly bare?: number;
  /** The option may be repeated; its value is the list of all values. */
  readonly multiple?: true;
}

export type Options = Readonly<Record<string, Option>>;

type ValueOf<O extends Option> = O extends { multiple: true }
  ? string[]
  : O extends { range: readonly [number, number] }
    ? number | (O extends { default: number } ? never : undefined)
    : O extends { value: string }
      ? string | (O extends { default: string } ? never : undefined)
      : boolean;

export type Values<O extends Options> = { readonly [Name in keyof O]: ValueOf<O[Name]> };

/** `<pool>` is required, `[id …]` is any number of words, `<id> …` at least one. */
export type Args<A extends string> = A extends `<${string}> …`
  ? [string, ...string[]]
  : A extends `<${string}> <${string}>`
    ? [string, string]
    : A extends `<${string}>`
      ? [string]
      : A extends `[${string} …]`
        ? string[]
        : [];

interface Page {
  /** The first line is the summary in lists of actions. */
  readonly about: string;
  /** Variables and what they mean; the actions of a group inherit them. */
  readonly environment?: Readonly<Record<string, string>>;
  /** When the command ends with 0 and when with 1; the actions of a group inherit it. */
  readonly exits?: readonly [done: string, notDone: string];
}

export interface Action<O extends Options = Options, A extends string = string> extends Page {
  readonly args?: A;
  /** The words that the first argument can be. */
  readonly choices?: readonly string[];
  readonly options?: O;
  readonly examples: readonly string[];
  /** Returns the exit code. */
  run(values: Values<O>, args: Args<A>): Promise<number>;
}

export interface Group extends Page {
  readonly actions: Readonly<Record<string, Command>>;
  /** The action that runs when none is named. */
  readonly default?: string;
}

export type Command = Action | Group;

/** Lets TypeScript derive the types of `values` and `args` from the declaration. */
// biome-ignore lint/complexity/noBannedTypes: {} is an action without options; Record<string, never> would type every name.
export function action<const O extends Options = {}, const A extends string = ''>(
  declared: Action<O, A>,
): Action {
  return declared as unknown as Action;
}

export function isGroup(command: Command): command is Group {
  return 'actions' in command;
}

/** A command was called in a way it does not understand: two lines, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

export interface Place {
  /** The words that lead there, such as webhooks endpoints add. */
  readonly path: readonly string[];
  /** The command at each of these words. */
  readonly chain: readonly [Command, ...Command[]];
}

export function commandAt({ chain }: Place): Command {
  return chain.at(-1) ?? chain[0];
}

/** The command, its actions and theirs. */
export function placesOf(name: string, command: Command): Place[] {
  const walk = (place: Place): Place[] => [place, ...below(place).flatMap(walk)];
  return walk({ path: [name], chain: [command] });
}

function below(place: Place): Place[] {
  const command = commandAt(place);
  const actions = isGroup(command) ? Object.entries(command.actions) : [];
  return actions.map(([word, at]) => ({ path: [...place.path, word], chain: [...place.chain, at] }));
}

/** As far as the words name actions; `rest` is what follows. */
export function find(
  name: string,
  command: Command,
  words: readonly string[],
): { place: Place; rest: readonly string[] } {
  let place: Place = { path: [name], chain: [command] };
  for (const [at, word] of words.entries()) {
    const next = below(place).find(({ path }) => path.at(-1) === word);
    if (next === undefined) return { place, rest: words.slice(at) };
    place = next;
  }
  return { place, rest: [] };
}

/**
 * Runs an action for a caller who may: `words` lead to it, `set` are the options that were given. Throws where the caller may not.
 */
export type Admit = (
  words: readonly string[],
  set: readonly string[],
  run: () => Promise<number>,
) => Promise<number>;

/** Runs what the words name; returns its exit code. */
export async function runCommand(
  name: string,
  command: Command,
  words: readonly string[],
  admit: Admit = (_words, _set, run) => run(),
): Promise<number> {
  const { place, rest } = find(name, command, words);
  try {
    const chosen = actionAt(place, rest);
    const { values, args } = parse(chosen, rest);
    const set = Object.keys(values).filter(
      (option) => values[option] !== false && values[option] !== undefined,
    );
    return await admit(wordsTo(place, chosen), set, () => chosen.run(values, args as Args<string>));
  } catch (error) {
    if (error instanceof UsageError) error.hint ??= hintAt(place);
    throw error;
  }
}

/** What would be right: the page, and a call that works. */
function hintAt(place: Place): string {
  const command = commandAt(place);
  const meant = isGroup(command) ? command.actions[command.default ?? ''] : command;
  const [example] = meant === undefined || isGroup(meant) ? [] : meant.examples;
  const page = `see \`sluice ${place.path.join(' ')} --help\``;
  return example === undefined ? page : `${page}; for example: ${example}`;
}

/** The words of the action itself, also where a group runs it by default. */
function wordsTo({ path, chain }: Place, chosen: Action): readonly string[] {
  const last = chain.at(-1);
  const byDefault = last !== undefined && isGroup(last) && last.actions[last.default ?? ''] === chosen;
  return byDefault ? [...path, last.default ?? ''] : path;
}

function actionAt(place: Place, [word]: readonly string[]): Action {
  const command = commandAt(place);
  if (!isGroup(command)) return command;
  const isNamed = word !== undefined && !word.startsWith('-');
  const byDefault = command.actions[command.default ?? ''];
  if (!isNamed && byDefault !== undefined && !isGroup(byDefault)) return byDefault;
  const names = Object.keys(command.actions);
  const path = place.path.join(' ');
  if (!isNamed) throw new UsageError(`say what to do: ${path} ${names.join('|')}`);
  const meant = nearest(word, names);
  throw new UsageError(`${path} cannot ${word}`, meant && `did you mean \`sluice ${path} ${meant}\`?`);
}

/** Reads the words after an action. Throws a UsageError where the declaration does not allow them. */
export function parse(
  { options = {}, args: wanted = '', choices }: Action,
  words: readonly string[],
): { values: Values<Options>; args: string[] } {
  const { tokens } = parseArgs({
    args: [...words],
    strict: false,
    tokens: true,
    allowPositionals: true,
    options: Object.fromEntries(
      Object.entries(options).map(([name, option]) => [name, { type: typeOf(option) }]),
    ),
  });
  const values: Record<string, string | number | boolean | string[] | undefined> = Object.fromEntries(
    Object.entries(options).map(([name, option]) => [name, unset(option)]),
  );
  const args: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') args.push(token.value);
    if (token.kind !== 'option') continue;
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (option === undefined) {
      const meant = nearest(token.name, Object.keys(options));
      throw new UsageError(`Unknown option ${token.rawName}`, meant && `did you mean --${meant}?`);
    }
    const value = readValue(token.rawName, option, token.value, token.inlineValue === true);
    const known = values[token.name];
    values[token.name] = Array.isArray(known) ? [...known, String(value)] : value;
  }
  checkArgs(args, wanted, choices);
  return { values: values as Values<Options>, args };
}

function typeOf({ value, range, bare }: Option): 'string' | 'boolean' {
  return bare === undefined && (value ?? range) !== undefined ? 'string' : 'boolean';
}

function unset({
  value,
  range,
  multiple,
  default: preset,
}: Option): string | number | boolean | string[] | undefined {
  if (multiple) return [];
  return preset ?? ((value ?? range) === undefined ? false : undefined);
}

function readValue(
  name: string,
  { value, range, bare, choices }: Option,
  text: string | undefined,
  isInline: boolean,
): string | number | boolean {
  if (value === undefined && range === undefined) {
    if (text !== undefined) throw new UsageError(`${name} takes no value`);
    return true;
  }
  if (text === undefined && bare !== undefined) return bare;
  if (range !== undefined) return readWhole(name, text ?? '', range);
  // `--pool --json` is a forgotten value; a lone dash is standard input.
  if (text === undefined || (!isInline && /^-./.test(text)))
    throw new UsageError(`${name} needs a value: ${name} ${value}`);
  if (choices !== undefined) checkChoice(`${name} is "${short(text)}"; it is`, text, choices);
  return text;
}

/** `wrong` is how the refusal begins: what was said instead. */
function checkChoice(wrong: string, text: string, choices: readonly string[]): void {
  if (choices.includes(text)) return;
  const meant = nearest(text, choices);
  throw new UsageError(`${wrong} one of ${choices.join(', ')}`, meant && `did you mean ${meant}?`);
}

export function readWhole(name: string, text: string, [least, most]: readonly [number, number]): number {
  if (/^\d{1,16}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
  throw new UsageError(`${name} is "${short(text)}"; it must be a whole number from ${least} to ${most}`);
}

function checkArgs(args: readonly string[], wanted: string, choices: readonly string[] | undefined): void {
  const named = wanted.match(/[<[]/g)?.length ?? 0;
  const required = wanted.match(/</g)?.length ?? 0;
  const [first] = args;
  if (args.length < required) {
    const words = choices === undefined ? '' : `: ${choices.join(', ')}`;
    throw new UsageError(`${wanted} is missing${words}`);
  }
  if (args.length > named && !wanted.includes('…'))
    throw new UsageError(`"${short(args[named] ?? '')}" is one argument too many`);
  if (choices !== undefined && first !== undefined) checkChoice(`"${short(first)}" is not`, first, choices);
}

/** Text from outside, for a message: on one line, and not all of it. */
export function short(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '?').slice(0, 80);
}

/** The name that was probably meant: the closest one, if it is close. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const scored = names.map((name) => ({ name, distance: distance(word, name) }));
  const [best] = scored.sort((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= Math.ceil(word.length / 3) ? best.name : undefined;
}

/** How many letters to change, add or drop to get from one to the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
