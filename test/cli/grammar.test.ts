import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { action, type Group, parse, runCommand, UsageError } from '../../src/commands/grammar.ts';

const OPTIONS = {
  pool: { value: 'ID', about: 'a text' },
  kind: { value: 'KIND', default: 'ring', about: 'a text with a default' },
  header: { value: 'NAME', multiple: true, about: 'a list' },
  limit: { range: [1, 1_000], default: 100, about: 'a number with a default' },
  days: { range: [0, 9], about: 'a number' },
  outage: { range: [1, 60], bare: 10, about: 'a number that may be left out' },
  json: { about: 'a flag' },
} as const;

const sample = action({
  about: 'Sample',
  args: '[id …]',
  options: OPTIONS,
  examples: [],
  run: async () => 0,
});
const refused = (words: string[], message: RegExp, of = sample) =>
  assert.throws(
    () => parse(of, words),
    (error) => error instanceof UsageError && message.test(error.message),
    words.join(' '),
  );

describe('the parser', () => {
  it('gives every option its type and its default', () => {
    const unset = {
      pool: undefined,
      kind: 'ring',
      header: [],
      limit: 100,
      days: undefined,
      outage: undefined,
    };
    assert.deepEqual(parse(sample, []), { values: { ...unset, json: false }, args: [] });
    const words = '7 --pool p --kind=k --header a --header b --limit 5 --days 0 --outage 8 --json'.split(' ');
    assert.deepEqual(parse(sample, words), {
      values: { pool: 'p', kind: 'k', header: ['a', 'b'], limit: 5, days: 0, outage: 10, json: true },
      args: ['7', '8'],
    });
    assert.equal(parse(sample, ['--outage=20']).values.outage, 20);
    assert.deepEqual(parse(sample, ['--', '--json']).args, ['--json']);
    assert.equal(parse(sample, ['--pool', '-']).values.pool, '-');
    assert.equal(parse(sample, ['--pool=-x']).values.pool, '-x');
  });

  it('refuses an option that is unknown, lacks its value or has one it does not take', () => {
    refused(['--nonsense'], /^Unknown option --nonsense$/);
    refused(['-5'], /^Unknown option -5$/);
    refused(['--constructor'], /^Unknown option --constructor$/);
    refused(['--no-json'], /^Unknown option --no-json$/);
    refused(['--pool'], /^--pool needs a value: --pool ID$/);
    refused(['--pool', '--json'], /^--pool needs a value/);
    refused(['--json=yes'], /^--json takes no value$/);
  });

  it('refuses a number out of its range, and text where a number belongs', () => {
    for (const wrong of ['0', '1001', '-1', '1.5', '1e2', 'many', ''])
      refused(['--limit', wrong], /^--limit is ".*"; it must be a whole number from 1 to 1000$/);
    refused(['--outage=61'], /^--outage is "61"/);
    refused(['--limit', 'a\u001b[31m'], /^--limit is "a\?\[31m"/);
  });

  it('counts arguments, and knows the words that the first can be', () => {
    const made = (args: '' | '<pool>' | '<pool> …' | '<shell> <n>', choices?: string[]) =>
      action({ about: 'A', args, ...(choices && { choices }), examples: [], run: async () => 0 });
    refused(['x'], /^"x" is one argument too many$/, made(''));
    refused([], /^<pool> is missing$/, made('<pool>'));
    refused(['a', 'b'], /^"b" is one argument too many$/, made('<pool>'));
    refused([], /^<pool> … is missing$/, made('<pool> …'));
    assert.deepEqual(parse(made('<pool> …'), ['a', 'b']).args, ['a', 'b']);
    refused(['bash'], /is missing: bash, zsh$/, made('<shell> <n>', ['bash', 'zsh']));
    refused(['tcsh', '1'], /^"tcsh" is not one of bash, zsh$/, made('<shell> <n>', ['bash', 'zsh']));
  });
});

describe('a group', () => {
  const ran: string[] = [];
  const acting = (name: string) =>
    action({
      about: name,
      options: { json: { about: 'a flag' } },
      examples: [],
      run: async ({ json }) => ran.push(`${name} ${json}`),
    });
  const inner: Group = {
    about: 'Inner',
    default: 'list',
    actions: { list: acting('list'), add: acting('add') },
  };
  const group: Group = { about: 'Outer', actions: { inner, show: acting('show') } };

  it('runs the action that the words name, or the default where none is named', async () => {
    for (const words of [['show'], ['inner', 'add', '--json'], ['inner'], ['inner', '--json']])
      await runCommand('outer', group, words);
    assert.deepEqual(ran, ['show false', 'add true', 'list false', 'list true']);
  });

  it('says which actions there are, and points at the page where the words end', async () => {
    const error = async (...words: string[]) => {
      const thrown = await runCommand('outer', group, words).catch((reason: unknown) => reason);
      assert.ok(thrown instanceof UsageError);
      return [thrown.message, thrown.hint];
    };
    assert.deepEqual(await error(), ['say what to do: outer inner|show', 'see `sluice outer --help`']);
    assert.deepEqual(await error('--json'), [
      'say what to do: outer inner|show',
      'see `sluice outer --help`',
    ]);
    assert.deepEqual(await error('inner', 'burn'), [
      'outer inner cannot burn',
      'see `sluice outer inner --help`',
    ]);
    assert.deepEqual(await error('shwo'), ['outer cannot shwo', 'did you mean `sluice outer show`?']);
    assert.deepEqual(await error('show', '7'), [
      '"7" is one argument too many',
      'see `sluice outer show --help`',
    ]);
  });
});
