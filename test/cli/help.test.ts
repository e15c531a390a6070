import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { loadAll } from '../../src/commands/all.ts';
import type { Command } from '../../src/commands/command.ts';
import { nearest } from '../../src/commands/nearest.ts';
import { UsageError } from '../../src/commands/usage_error.ts';
import { sluice } from '../work/support.ts';
import { runHere } from './support.ts';

/** Help is read in terminals, some of them not wide. */
const WIDEST_LINE = 130;

function isUsageError(error: unknown): boolean {
  if (error instanceof UsageError) return true;
  return error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
}

describe('every command', () => {
  let commands: [string, Command][];

  before(async () => {
    commands = Object.entries(await loadAll());
  });

  it('stands in the overview with its summary', async () => {
    const { code, stdout } = await sluice(['--help'], {}).ended;
    assert.equal(code, 0);
    for (const [name, { summary }] of commands) {
      assert.match(summary, /^\S.{10,70}$/, name);
      assert.ok(stdout.includes(`\n  ${name.padEnd(10)} ${summary}\n`), `${name} is missing:\n${stdout}`);
    }
    assert.match(stdout, /^Exit codes: 0 .*1 .*2 /m);
    assert.match(stdout, /^Examples:\n {2}sluice /m);
  });

  it('has a page with its usage, what it is about, and an example', () => {
    for (const [name, { usage }] of commands) {
      assert.match(usage, new RegExp(`^sluice ${name}\\b`), `${name} does not begin with its usage`);
      const example = /^Examples?:\n(?: {2}.*\n)*? {2}.*\b(?:sluice|npm)\b/m;
      assert.match(usage, example, `${name} has no example`);
      const lines = usage.split('\n');
      assert.ok(lines.length > 6, `${name} says too little`);
      for (const line of lines)
        assert.ok(line.length <= WIDEST_LINE, `${name}: ${line.length} wide: ${line}`);
    }
  });

  it('refuses an option it does not know, before it does anything', async () => {
    for (const [name, { run }] of commands) {
      // The bench is a program of its own.
      if (name === 'bench') continue;
      await assert.rejects(run(['--no-such-option']), isUsageError, name);
    }
  });

  it('hands the options of the bench on, whose answer it is', async () => {
    const { code, stderr } = await sluice(['bench', '--no-such-option'], {}).ended;
    assert.equal(code, 2);
    assert.match(stderr, /hint: --help tells more/);
  });

  it('ends with exit code 2, a hint and no stack trace when it is called in the wrong way', async () => {
    const calls = [['doctor', '--no-such-option'], ['pools', 'paint'], ['completion']];
    for (const args of calls) {
      const { code, stdout, stderr } = await runHere(args, {});
      assert.equal(code, 2, `${args}: ${stdout}${stderr}`);
      assert.match(stderr, /hint: .*--help/);
      assert.doesNotMatch(stderr, / at .*\.ts:/);
      assert.equal(stdout, '');
    }
  });

  it('is named when somebody mistypes it, and "help x" is "x --help"', async () => {
    const typo = await runHere(['polos'], {});
    assert.equal(typo.code, 2);
    assert.match(typo.stderr, /hint: did you mean `sluice pools`\?/);
    assert.match((await runHere(['frobnicate'], {})).stderr, /hint: `sluice --help` lists them/);
    assert.match((await runHere(['help', 'pools'], {})).stdout, /^sluice pools /);
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
