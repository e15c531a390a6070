import assert from 'node:assert/strict';
import { it, describe as suite } from 'node:test';
import { runShow } from '../../src/demo/show.ts';
import { describe, outcomeOf } from '../../src/demo/summary.ts';
import { claimOf, openBox } from './support.ts';

const SEATS = 20;
/** Far longer than the show takes. */
const PATIENCE_MS = 20_000;
const LOAD = { cores: 1, cpuMs: 1, elapsedMs: 1, memoryMb: 1 };
const WHY = 'the crowd was over before it had a fifth of the seats that it could get';

suite('a demo that is to stop the ledger', () => {
  it('ends and says that there was no outage, where the crowd is over before a fifth is claimed', async (t) => {
    const others = Array.from({ length: SEATS }, (_, at) => claimOf(at));
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const trial = await openBox({ seats: SEATS, buyers: 30, available: () => 0, others, signal });
    t.after(trial.close);
    const said: string[] = [];
    const facts = await runShow({
      ...trial,
      stripeSecret: undefined,
      // Without a stack in it: asking it to stop the ledger would fail.
      outage: { dir: '/nonexistent', seconds: 60 },
      progress: { say: (line) => said.push(line), end: () => undefined },
    });
    assert.deepEqual(said, [`There was no outage: ${WHY}.`]);
    const outcome = outcomeOf(facts, trial.tally, LOAD);
    assert.deepEqual([outcome.problems, outcome.outage, outcome.no_outage], [[], null, WHY]);
    assert.match(describe(outcome, undefined), new RegExp(`Outage +none: ${WHY}\\n`));
  });
});
