import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CONTROLS } from '../../chaos/controls/controls.ts';
import { type Control, runControl } from '../../chaos/controls/run_control.ts';
import type { RunOptions } from '../../chaos/options.ts';
import { runHistory } from '../../chaos/world_run.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { goodHistory } from './good_history.ts';

/** Long enough for some payments that are told by two events. */
const SHORT_MINUTES = 0.06;

describe('the patches of the negative controls', () => {
  let databases: TestDatabases;
  before(async () => {
    databases = await startDatabases();
  });
  after(() => databases?.stop());

  for (const { name, options } of CONTROLS) {
    if (options.patch === undefined) continue;
    test(`${name} fits the functions as they are now`, async () => {
      for (const side of ['db1', 'db2'] as const) {
        const client = await openClient(databases[side].url);
        try {
          await client.query('begin');
          await client.query(options.patch?.[side] ?? '');
          await client.query('rollback');
        } finally {
          await client.end();
        }
      }
    });
  }

  test('refuse a place that is gone', async () => {
    const client = await openClient(databases.db2.url);
    const patch = CONTROLS.find(({ name }) => name === 'do-nothing')?.options.patch?.db2 ?? '';
    try {
      await client.query('begin');
      await assert.rejects(client.query(patch.replaceAll('conflict', 'quarrel')), /does not fit/);
      await client.query('rollback');
    } finally {
      await client.end();
    }
  });
});

describe('a negative control', () => {
  const control: Control = { name: 'c', why: 'w', promises: ['I10'], options: { minutes: 1 } };

  test('goes on with the next seed until a promise is broken that it names', async () => {
    const asked: RunOptions[] = [];
    const result = await runControl(
      control,
      async (options) => {
        asked.push(options);
        const history = goodHistory();
        // What was not to be broken does not count, what was comes third.
        if (asked.length === 2) history.final.calls = [];
        if (asked.length === 3) history.drainedAt = null;
        return history;
      },
      { seed: 7 },
    );
    assert.deepEqual(
      asked.map(({ seed, minutes }) => [seed, minutes]),
      [
        [7, 1],
        [8, 1],
        [9, 1],
      ],
    );
    assert.deepEqual([result.seed, result.rounds, result.violations], [9, 3, { I10: 1 }]);
    assert.equal(result.example?.promise, 'I10');
  });

  test('that names several promises goes on until one run has broken all of them', async () => {
    let runs = 0;
    const result = await runControl({ ...control, promises: ['I5', 'I10'] }, async () => {
      const history = goodHistory();
      runs++;
      if (runs !== 2) history.drainedAt = null;
      if (runs !== 1) history.final.slots.pop();
      return history;
    });
    assert.deepEqual([result.seed, result.rounds, result.example?.promise], [3, 3, 'I5']);
  });

  test('that finds only some of what it names says that it found nothing, and what it did find', async () => {
    const run = async () => ({ ...goodHistory(), drainedAt: null });
    const result = await runControl({ ...control, promises: ['I5', 'I10'] }, run, { budgetMs: -1 });
    assert.deepEqual([result.seed, result.example, result.violations], [null, null, { I10: 1 }]);
  });

  test('that finds nothing in its time says so', async () => {
    const result = await runControl(control, async () => goodHistory(), { budgetMs: -1 });
    assert.deepEqual([result.seed, result.rounds, result.example], [null, 1, null]);
  });

  test('is refused when its servers did not even start', async () => {
    const run = async () => ({ ...goodHistory(), surprises: ['server-1 ended by itself'] });
    await assert.rejects(runControl(control, run), /control c could not be tried: server-1 ended by itself/);
  });

  test('is found out in a real run: facts that are counted twice break I7', async (t) => {
    const real = CONTROLS.find(({ name }) => name === 'facts-counted-twice') as Control;
    const short = { ...real, options: { ...real.options, minutes: SHORT_MINUTES, scale: 'small' as const } };
    const result = await runControl(short, runHistory);
    t.diagnostic(JSON.stringify(result));
    assert.notEqual(result.seed, null);
    // Only what was broken is seen to be broken.
    assert.deepEqual(Object.keys(result.violations), ['I7', 'I8']);
  });
});
