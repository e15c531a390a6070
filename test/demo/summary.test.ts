import assert from 'node:assert/strict';
import { it, describe as suite } from 'node:test';
import { describe, type Facts, outcomeOf } from '../../src/demo/summary.ts';
import { newTally } from '../../src/demo/tally.ts';
import { claimOf } from './support.ts';

const FACTS: Facts = {
  ...{ pool: 'p', seats: 20, buyers: 4_000, burstMs: 2_000, drainedMs: 2_000, outage: undefined },
};

function outcome(cores: number, cpuMs: number) {
  const tally = newTally();
  tally.claims.push(...Array.from({ length: 20 }, (_, at) => claimOf(at)));
  tally.tickets = 20;
  tally.soldOut = 3_980;
  return outcomeOf(FACTS, tally, { cores, cpuMs, elapsedMs: 5_000, memoryMb: 100 });
}

suite('the summary of the demo', () => {
  it('divides its rates by the cores of the machine', () => {
    const { claims_per_sec, claims_per_sec_per_core, tickets_per_sec, tickets_per_sec_per_core } = outcome(
      4,
      1,
    );
    assert.deepEqual(
      [claims_per_sec, claims_per_sec_per_core, tickets_per_sec, tickets_per_sec_per_core],
      [2_000, 500, 5, 1],
    );
  });

  it('names the share of the machine that the demo itself took, over all cores and while it ran', () => {
    assert.equal(outcome(2, 2_500).load.share, 0.25);
    assert.equal(outcome(4, 2_500).load.share, 0.125);
    assert.equal(outcome(1, 5_000).load.share, 1);
  });

  it('says nothing of an outage that was not asked for', () => {
    const { outage, no_outage } = outcome(1, 1);
    assert.deepEqual([outage, no_outage], [null, null]);
    assert.doesNotMatch(describe(outcome(1, 1), undefined), /Outage/);
  });

  it('says both to people', () => {
    const text = describe(outcome(2, 2_500), undefined);
    assert.match(text, /Buyers +4,000 in 2 s \(2,000\/s, 1,000\/s for each of 2 cores\)/);
    assert.match(
      text,
      /Time +4 s from the first claim to the last ticket \(5 tickets\/s, 3\/s for each core\)/,
    );
    assert.match(
      text,
      /Load +this command, which sent the load, took 2\.5 s of CPU, 25 % of this machine's 2 cores, and 100 MB/,
    );
  });
});
