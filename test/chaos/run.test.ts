// A short run with all faults: real processes, a seed by chance, and every promise kept. SLUICE_CHAOS_SEED repeats one,
// SLUICE_CHAOS_MINUTES makes it longer.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { judge } from '../../chaos/judge.ts';
import { FAULTS } from '../../chaos/options.ts';
import { runHistory } from '../../chaos/world_run.ts';

const SEED = Number(process.env.SLUICE_CHAOS_SEED ?? Date.now() % 1_000_000);
const MINUTES = Number(process.env.SLUICE_CHAOS_MINUTES ?? 0.35);
const ENTRY = fileURLToPath(new URL('../../chaos/run.ts', import.meta.url));

describe('a short run with all faults', () => {
  it(`keeps every promise, loses nobody's answer and drains (seed ${SEED})`, async (t) => {
    t.diagnostic(`SLUICE_CHAOS_SEED=${SEED}`);
    const history = await runHistory({ seed: SEED, minutes: MINUTES, faults: FAULTS, scale: 'small' });
    const { violations, counts } = judge(history);
    t.diagnostic(`${history.faults.length} faults, ${JSON.stringify(counts)}`);
    assert.deepEqual(violations, []);
    assert.deepEqual(history.surprises, []);
    // Negative control: a history in which nothing happened would keep every promise too.
    assert.ok(history.faults.length > 0, 'no fault happened');
    for (const kind of ['claims', 'events', 'calls'] as const)
      assert.ok(counts[kind].acknowledged > 0, `nobody's ${kind} were acknowledged`);
    assert.ok(history.final.tickets.length > 0, 'nobody has a ticket');
    assert.ok(
      history.targetCalls.some(({ status }) => status === 200),
      'the target was never asked',
    );
  });
});

describe('npm run chaos', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['--import', 'tsx', ENTRY, ...args], { encoding: 'utf8' });

  it('says how it is used, and refuses what makes no sense with code 2 and a hint', () => {
    const help = run('--help');
    assert.equal(help.status, 0, help.stderr);
    for (const fault of FAULTS) assert.ok(help.stdout.includes(fault), `${fault} is not explained`);
    const wrong = run('--faults', 'earthquake');
    assert.equal(wrong.status, 2);
    assert.match(wrong.stderr, /no fault "earthquake"; there are kill-db1-postmaster/);
    assert.equal(wrong.stdout, '');
  });
});
