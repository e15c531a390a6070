// Wrong use of every command and action, made from the declarations: exit code 2, before a server or a database is asked, with
// words that say what would be right.

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { loadAll } from '../../src/commands/all.ts';
import {
  type Action,
  commandAt,
  isGroup,
  type Option,
  type Place,
  placesOf,
} from '../../src/commands/grammar.ts';
import { runHere } from './support.ts';

/** Nothing answers there: what is not refused before fails with exit code 1. */
const NOWHERE = {
  SLUICE_URL: 'http://127.0.0.1:1',
  SLUICE_ADMIN_KEY: 'a-key-that-no-server-knows',
  DB1_URL: 'postgres://sluice@127.0.0.1:1/nothing',
  DB2_URL: 'postgres://sluice@127.0.0.1:1/nothing',
  SLUICE_DIR: '/nonexistent',
  OPS_SITE_ID: 'site',
  OPS_SITE_SECRET: 'a-secret',
  STRIPE_WEBHOOK_SECRET: 'whsec_test',
};

interface Leaf {
  name: string;
  path: readonly string[];
  action: Action;
  /** The words after the path of an example that works; one with this option, where there is one. */
  exampleWith(option: string): string[];
}

/** The words of a line as a shell takes them apart, up to a pipe or a redirection. */
function wordsOf(line: string): string[] {
  const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? '',
  );
  const end = words.findIndex((word) => /^[|<>]/.test(word));
  return end === -1 ? words : words.slice(0, end);
}

function leafOf(place: Place): Leaf[] {
  const action = commandAt(place);
  if (isGroup(action)) return [];
  const name = place.path.join(' ');
  const lines = action.examples.filter((line) => line.startsWith(`sluice ${name}`));
  const exampleWith = (option: string): string[] => {
    const line = lines.find((one) => one.includes(`--${option}`)) ?? lines[0] ?? '';
    return wordsOf(line).slice(1 + place.path.length);
  };
  return [{ name, path: place.path, action, exampleWith }];
}

/** A value that an option of this form cannot have, and what the refusal says instead. Text may be any. */
function wrongFor({ value = '', range, choices }: Option): [given: string, right: RegExp] | undefined {
  if (range !== undefined) return ['many', new RegExp(`whole number from ${range[0]} to ${range[1]}`)];
  if (choices !== undefined) return ['no such word', new RegExp(choices.join(', '))];
  switch (value) {
    case 'TIME':
      return ['tomorrow', /\b(2026-\d\d-\d\d|15m, 1h)/];
    case 'AGE':
      return ['long', /30s, 10m, 2h or 7d/];
    case 'UUID':
      return ['x', /a uuid such as [0-9a-f-]{36}/];
    case 'URL':
      return ['not an address', /https:\/\//];
    case 'JSON':
      return ['{', /JSON|is not one/];
    case 'N':
      return ['many', /whole number from \d+/];
    case 'yes|no':
      return ['maybe', /yes or no/];
    default:
      return value.includes('|') ? ['no such word', new RegExp(value.replaceAll('|', ', '))] : undefined;
  }
}

describe('every command, used in the wrong way', () => {
  let leaves: Leaf[];
  before(async () => {
    const commands = Object.entries(await loadAll());
    leaves = commands.flatMap(([name, command]) => placesOf(name, command)).flatMap(leafOf);
    assert(leaves.length > 50, `${leaves.length} actions`);
  });

  /** Runs it; returns what is wrong with the refusal. */
  async function faultOf(words: readonly string[], right: RegExp): Promise<string[]> {
    const { code, stdout, stderr } = await runHere([...words], NOWHERE);
    const said = `sluice ${words.join(' ')} (exit ${code}): ${stderr || stdout}`;
    const [message = '', hint = '', ...more] = stderr.trimEnd().split('\n');
    if (code !== 2 || message === '' || !hint.startsWith('hint: ') || more.length > 0) return [said];
    return right.test(stderr) ? [] : [`${said} does not say ${right}`];
  }

  it('points at its page and at a call that works, where an option, a word or an argument is not its own', async () => {
    const wrong: string[] = [];
    for (const { path, name, action } of leaves) {
      const help = new RegExp(`^hint: see \`sluice ${name} --help\`; for example: \\S.*$`, 'm');
      wrong.push(...(await faultOf([...path, '--zzzzzzzzzzzz'], help)));
      const { args = '', choices } = action;
      const named = args.match(/[<[]/g)?.length ?? 0;
      if (!args.includes('…')) {
        const given = Array.from({ length: named }, (_, at) => (at === 0 ? choices?.[0] : undefined) ?? 'x');
        wrong.push(...(await faultOf([...path, ...given, 'one-more'], help)));
      }
      if (args.includes('<')) wrong.push(...(await faultOf(path, /is missing/)));
      if (choices !== undefined) {
        const rest = Array.from({ length: named - 1 }, () => 'x');
        wrong.push(...(await faultOf([...path, 'zzzz', ...rest], new RegExp(choices.join(', ')))));
      }
    }
    assert.deepEqual(wrong, []);
  });

  it('names the option that was probably meant', async () => {
    const wrong: string[] = [];
    for (const { path, action } of leaves)
      for (const option of Object.keys(action.options ?? {}).filter((one) => one.length > 5)) {
        const meant = new RegExp(`^hint: did you mean --${option}\\?$`, 'm');
        wrong.push(...(await faultOf([...path, `--${option}x`], meant)));
      }
    assert.deepEqual(wrong, []);
  });

  it('says the form of a value that has another, for every option that has a form', async () => {
    const wrong: string[] = [];
    let tried = 0;
    for (const { path, action, exampleWith } of leaves)
      for (const [name, option] of Object.entries(action.options ?? {})) {
        const [given, right] = wrongFor(option) ?? [];
        if (given === undefined || right === undefined) continue;
        tried++;
        wrong.push(...(await faultOf([...path, ...exampleWith(name), `--${name}=${given}`], right)));
      }
    assert(tried > 80, `${tried} options`);
    assert.deepEqual(wrong, []);
  });

  it('says what the value is, where it is left out', async () => {
    const wrong: string[] = [];
    for (const { path, action, exampleWith } of leaves)
      for (const [name, { value, range, bare }] of Object.entries(action.options ?? {})) {
        if ((value ?? range) === undefined || bare !== undefined) continue;
        const right = range === undefined ? /needs a value: --/ : /whole number from/;
        wrong.push(...(await faultOf([...path, ...exampleWith(name), `--${name}`], right)));
      }
    assert.deepEqual(wrong, []);
  });
});
