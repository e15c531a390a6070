import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { COMMANDS, loadAll } from '../../src/commands/all.ts';
import {
  type Command,
  commandAt,
  isGroup,
  nearest,
  type Place,
  placesOf,
  runCommand,
  UsageError,
} from '../../src/commands/grammar.ts';
import { sluice } from '../work/support.ts';
import { runHere } from './support.ts';

/** Help is read in terminals, some of them not wide. */
const WIDEST_LINE = 130;

describe('every command', () => {
  let commands: [string, Command][];
  let places: Place[];

  before(async () => {
    commands = Object.entries(await loadAll());
    places = commands.flatMap(([name, command]) => placesOf(name, command));
  });

  it('stands in the overview with its summary', async () => {
    const { code, stdout } = await sluice(['--help'], {}).ended;
    assert.equal(code, 0);
    for (const [name, [summary]] of Object.entries(COMMANDS)) {
      assert.match(summary, /^\S.{10,70}$/, name);
      assert.ok(stdout.includes(`\n  ${name.padEnd(10)}  ${summary}\n`), `${name} is missing:\n${stdout}`);
    }
    assert.match(stdout, /^Exit codes: 0 .*1 .*2 /m);
    assert.match(stdout, /^Examples:\n {2}sluice /m);
  });

  it('has a page with its usage, what it is about, exit codes and an example, and so has each of its actions', async () => {
    for (const { path } of places) {
      const name = path.join(' ');
      const { code, stdout } = await runHere([...path, '--help'], {});
      assert.equal(code, 0, name);
      assert.match(
        stdout,
        new RegExp(`^sluice ${name}\\b.*\n\n\\S`),
        `${name} does not begin with its usage`,
      );
      assert.match(stdout, /^Exit code: 0 .*, 1 /m, name);
      const example = new RegExp(`^Examples:\n(?: {2}.*\n)*? {2}.*(\\bsluice ${name}\\b|npm )`, 'm');
      assert.match(stdout, example, `${name} has no example`);
      for (const line of stdout.split('\n'))
        assert.ok(line.length <= WIDEST_LINE, `${name}: ${line.length} wide: ${line}`);
    }
  });

  it('lists its actions on its page, and names for each the arguments it takes', async () => {
    const { stdout } = await runHere(['webhooks', '--help'], {});
    assert.match(stdout, /^ {2}endpoints rotate <name> +Put a new secret first/m);
    assert.match(stdout, /^ {2}replay \[id …\] +Replay /m);
    assert.match(stdout, /^Environment:\n {2}DB2_URL /m);
  });

  it('refuses an option it does not know, before it does anything, and so does each of its actions', async () => {
    for (const place of places) {
      const [name = '', ...words] = place.path;
      const command = place.chain[0];
      await assert.rejects(runCommand(name, command, [...words, '--no-such-option']), UsageError, name);
      if (isGroup(commandAt(place))) continue;
      const { code, stderr } = await runHere([...place.path, '--no-such-option'], {});
      assert.equal(code, 2);
      assert.match(stderr, /^Unknown option --no-such-option\nhint: see `sluice /, place.path.join(' '));
    }
  });

  it('ends with exit code 2, a hint and no stack trace when it is called in the wrong way', async () => {
    const calls = [['doctor', '--no-such-option'], ['pools', 'paint'], ['completion'], ['bench', '--quick']];
    for (const args of calls) {
      const { code, stdout, stderr } = await runHere(args, {});
      assert.equal(code, 2, `${args}: ${stdout}${stderr}`);
      assert.match(stderr, /hint: .*--help/);
      assert.doesNotMatch(stderr, / at .*\.ts:/);
      assert.equal(stdout, '');
    }
  });

  it('is named to a user who mistypes it, as are its actions and options; "help x" is "x --help"', async () => {
    const typed = async (...words: string[]) => {
      const { code, stderr } = await runHere(words, {});
      assert.equal(code, 2, words.join(' '));
      return stderr;
    };
    assert.match(await typed('polos'), /hint: did you mean `sluice pools`\?/);
    assert.match(await typed('frobnicate'), /hint: `sluice --help` lists them/);
    assert.match(await typed('pools', 'creat', 'x'), /hint: did you mean `sluice pools create`\?/);
    assert.match(
      await typed('dlq', 'list', '--jason'),
      /^Unknown option --jason\nhint: did you mean --json\?/,
    );
    assert.match(await typed('completion', 'bsh'), /hint: did you mean bash\?/);
    assert.match((await runHere(['help', 'pools'], {})).stdout, /^sluice pools /);
    assert.match((await runHere(['help', 'pools', 'set'], {})).stdout, /^sluice pools set <pool> /);
  });
});

describe('nearest', () => {
  it('finds what is close and nothing that is not', () => {
    const names = ['pools', 'claims', 'doctor'];
    assert.equal(nearest('doctr', names), 'doctor');
    assert.equal(nearest('claim', names), 'claims');
    assert.equal(nearest('reset', names), undefined);
  });
});
