// A short run of `npm run model` in every check: histories with a fixed seed and with a new one, and the controls.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CONTROLS, type Control, runControl, violationOf } from './controls.ts';
import { type Found, runBlocks } from './engine.ts';
import { type Lane, type Lanes, startLanes } from './lanes.ts';
import { playLateTicket } from './late_ticket.ts';
import { playScenario, SCENARIOS, timersOfStalled } from './orders/directed.ts';
import { SUBJECTS } from './subjects.ts';

const HISTORIES = 50;
const FIXED_SEED = 2;
const SEED_MAX = 2 ** 31 - 1;
/** The shortest history that shows it is: claim, take, release. */
const SHORT_HISTORY = 5;

/** One is enough to see that a history shrinks. */
const SHRUNK = 'late-release';
const CONTROLS_AT_ONCE = 3;
/** Each needs several steps in the right order. */
const HARD_ANSWERS = [
  'lost_lease',
  'conflict',
  'ticket_of_another_claim',
  'replayed',
  'ending',
  'body_differs',
  'dead_letter',
];

const tell = ({ seed, violation, history }: Found): string =>
  [`seed ${seed}`, violation, ...history.map((line, at) => `${at + 1}. ${line}`)].join('\n');

describe('histories of commands', () => {
  let lanes: Lanes;
  const plain: Lane[] = [];

  before(async () => {
    lanes = await startLanes();
    plain.push(await lanes.open(), await lanes.open());
  });
  after(() => lanes?.stop());

  const play = async (seed: number) => {
    const blocks = SUBJECTS.map((subject) => ({ subject, seed, histories: HISTORIES }));
    const tally = await runBlocks(plain, blocks, () => undefined);
    assert.equal(tally.violations.map(tell).join('\n\n'), '');
    assert.deepEqual(tally.unknownSteps, [], 'steps that are not in tools/machines');
    assert.equal(tally.histories, HISTORIES * SUBJECTS.length);
    return tally.answers;
  };

  test(`answer as the models say, and come to what is hard to come to, with the seed ${FIXED_SEED}`, async () => {
    const answers = await play(FIXED_SEED);
    assert.deepEqual(
      HARD_ANSWERS.filter((answer) => answers[answer] === undefined),
      [],
    );
  });

  const newSeed = randomInt(SEED_MAX);
  test(`answer as the models say, with the new seed ${newSeed}`, async () => {
    await play(newSeed);
  });

  test('never leave a ticket to a slow worker whose claim was buried, replayed and released', async () => {
    assert.equal(await playLateTicket(await lanes.open()), 'ending');
    const unguarded = await lanes.open(CONTROLS['replayed-release']?.apply);
    assert.equal(await playLateTicket(unguarded), 'released');
  });

  describe('on databases without a guard', { concurrency: CONTROLS_AT_ONCE }, () => {
    for (const [name, control] of Object.entries(CONTROLS)) {
      // Those of paid orders have histories of their own, which take a second each.
      if (control.direct !== undefined) continue;
      test(`notice when ${control.summary} (${name})`, async () => {
        const isShrunk = name === SHRUNK;
        const { violation, histories, history } = await runControl(
          lanes,
          name,
          control,
          FIXED_SEED,
          isShrunk,
        );
        assert.notEqual(violation, null, `${histories} histories noticed nothing`);
        if (!isShrunk) return;
        assert.match(violation ?? '', /^I6: release of c1 answers released, not ending$/);
        assert(history.length <= SHORT_HISTORY, history.join('\n'));
      });
    }
  });
});

// One after the other: some controls patch the core, which all histories share.
describe('a history made for one guard of paid orders', () => {
  let lanes: Lanes;
  let plain: Lane;
  before(async () => {
    lanes = await startLanes();
    plain = await lanes.open();
  });
  after(() => lanes?.stop());

  test('is there for each guard', () => {
    const names = Object.keys(CONTROLS).filter((name) => CONTROLS[name]?.direct !== undefined);
    assert.deepEqual(Object.keys(SCENARIOS).sort(), names.sort());
  });

  test('ends well while the guard is there', async () => {
    for (const name of Object.keys(SCENARIOS)) await playScenario(plain, name);
  });

  test('leaves no timer behind: one of a process that stalled would keep a run of the model alive', async () => {
    assert.deepEqual(await timersOfStalled(plain), { stalled: 1, after: 0 });
  });

  for (const name of Object.keys(SCENARIOS)) {
    const control = CONTROLS[name] as Control;
    test(`breaks a promise when ${control.summary} (${name})`, async () => {
      assert.notEqual(await violationOf(control, await lanes.open(control.apply)), undefined);
    });
  }
});

describe('npm run model', () => {
  const run = (...args: string[]) =>
    spawnSync(
      process.execPath,
      ['--import', 'tsx', fileURLToPath(new URL('./run.ts', import.meta.url)), ...args],
      { encoding: 'utf8' },
    );

  test('refuses what it does not understand, with a hint, and starts nothing', () => {
    const { status, stdout, stderr } = run('--control', 'no-such');
    assert.equal(status, 2);
    assert.equal(stdout, '');
    assert.match(stderr, /unknown control no-such; known are fence-off, .*\nhint: .*--help/);
  });
});
