// A short run: real processes, a seed by chance, a crash, a cut, Stripe down and what else of the faults there is time for (about
// seven of all kinds), and every promise kept. SLUICE_CHAOS_SEED repeats one, SLUICE_CHAOS_MINUTES makes it longer.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { judge } from '../../chaos/judge.ts';
import { FAULTS, type FaultName } from '../../chaos/options.ts';
import { runHistory } from '../../chaos/world_run.ts';

const SEED = Number(process.env.SLUICE_CHAOS_SEED ?? Date.now() % 1_000_000);
const MINUTES = Number(process.env.SLUICE_CHAOS_MINUTES ?? 0.35);
/** However short the run is, these happen. */
const FIRST: readonly FaultName[] = ['kill-db1-postmaster', 'cut', 'stripe-down'];
const ENTRY = fileURLToPath(new URL('../../chaos/run.ts', import.meta.url));

describe('a short run with a crash, a cut, Stripe down and a few other faults', () => {
  it(`keeps every promise, loses no acknowledged request and drains (seed ${SEED})`, async (t) => {
    t.diagnostic(`SLUICE_CHAOS_SEED=${SEED}`);
    const options = { seed: SEED, minutes: MINUTES, faults: FAULTS, first: FIRST, scale: 'small' } as const;
    const history = await runHistory(options);
    const { violations, counts } = judge(history);
    t.diagnostic(`${history.faults.length} faults, ${JSON.stringify(counts)}`);
    assert.deepEqual(violations, []);
    assert.deepEqual(history.surprises, []);
    // Negative control: a history in which nothing happened would keep every promise too.
    const happened = new Set(history.faults.map(({ name }) => name));
    for (const fault of FIRST) assert.ok(happened.has(fault), `no ${fault} happened`);
    for (const kind of ['claims', 'events', 'calls'] as const)
      assert.ok(counts[kind].acknowledged > 0, `no ${kind} were acknowledged`);
    assert.ok(history.final.tickets.length > 0, 'no claim became a ticket');
    assert.ok(history.final.payments.length > 0, 'no payment was recorded');
    assert.ok((history.paid?.final.tickets.length ?? 0) > 0, 'no order was bought');
    assert.ok(history.finishes.length > 0, 'no worker told of a delivery');
    assert.ok(
      history.eventFinishes.some(({ takeovers }) => takeovers >= 0),
      'no worker told of a lease on an event',
    );
    assert.ok(
      history.targetCalls.some(({ status }) => status === 200),
      'the target was never asked',
    );
    // Every fault that was possible is not every fault: a run without one of its parts does not count as passed.
    if (history.leftOut?.length) t.skip(history.leftOut.join('; '));
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
    assert.match(wrong.stderr, /unknown fault "earthquake"; known are kill-db1-postmaster/);
    assert.equal(wrong.stdout, '');
  });
});
