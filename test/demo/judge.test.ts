import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { watchEffects, watchLedger, watchTickets } from '../../src/demo/ledger.ts';
import { PRICE } from '../../src/demo/payments.ts';
import { Meter } from '../../src/demo/progress.ts';
import { newTally } from '../../src/demo/tally.ts';
import { claimOf, ledgerWith, ticketOf } from './support.ts';

const never = new AbortController().signal;

describe('the demo looks at the ledger', () => {
  it('and finds nothing wrong where each claim is its own ticket, though it was away for a while', async () => {
    const tally = newTally();
    tally.claims.push(claimOf(1), claimOf(2));
    const away = Object.assign(new Error('gone'), { code: '57P01' });
    await watchTickets(ledgerWith(away, tally.claims.map(ticketOf)), tally, () => true, never);
    assert.deepEqual([tally.tickets, tally.problems], [2, []]);
  });

  it('and notices a ticket of another claim, of another buyer, and a slot that was given twice', async () => {
    for (const wrong of [{ claim_id: 'claim 9' }, { user_id: 'user 9' }]) {
      const tally = newTally();
      tally.claims.push(claimOf(1));
      await watchTickets(ledgerWith([{ ...ticketOf(claimOf(1)), ...wrong }]), tally, () => true, never);
      assert.deepEqual(tally.problems, [`the ticket of slot slot 1 is another buyer's`]);
    }
    const tally = newTally();
    tally.claims.push(claimOf(1), { ...claimOf(2), resource_id: 'slot 1' });
    await watchTickets(
      ledgerWith([ticketOf({ ...claimOf(2), resource_id: 'slot 1' })]),
      tally,
      () => true,
      never,
    );
    assert.deepEqual(tally.problems, ['slot slot 1 was given to two buyers']);
  });

  it('and calls it away at the second look in a row without an answer', async () => {
    const tally = newTally();
    const over = new AbortController();
    const away = Object.assign(new Error('gone'), { code: '57P01' });
    const looks = [away, [], away, away, [], []];
    const seen: boolean[] = [];
    const db2 = ledgerWith(...looks);
    const call: typeof db2.call = (...asked) => {
      seen.push(tally.ledgerAnswers);
      if (seen.length === looks.length) over.abort();
      return db2.call(...asked);
    };
    await watchLedger({ ...db2, call }, tally, over.signal);
    assert.deepEqual(seen, [true, true, true, true, false, true]);
  });

  it('and does not take a mistake for an outage', async () => {
    const tally = newTally();
    tally.claims.push(claimOf(1));
    const wrong = Object.assign(new Error('no such function'), { code: '42883' });
    await assert.rejects(
      watchTickets(ledgerWith(wrong), tally, () => true, never),
      /no such function/,
    );
  });

  it('and notices a payment that had two effects', async () => {
    for (const [effects, problems] of [
      [3, []],
      [4, ['3 payments had 4 effects']],
    ] as const) {
      const tally = newTally();
      tally.paid = 3;
      await watchEffects(ledgerWith([{ amount: effects * PRICE }]), 'account', tally, never);
      assert.deepEqual([tally.effects, tally.problems], [effects, problems]);
    }
  });
});

describe('a meter of the demo', () => {
  it('tells the rate of the last two seconds and the time that is left at it', () => {
    let now = 0;
    let count = 0;
    const meter = new Meter(
      'Claims',
      () => 1_000,
      () => count,
      () => now,
    );
    assert.equal(meter.line(false), 'claims 0 of 1,000');
    now = 1_000;
    count = 200;
    assert.equal(meter.line(false), 'claims 200 of 1,000, 200/s, 4 s left');
    assert.equal(meter.line(true), 'Claims    [####....................] 200 of 1,000, 200/s, 4 s left');
    for (now = 2_000; now <= 6_000; now += 1_000) meter.line(false);
    assert.equal(meter.line(false), 'claims 200 of 1,000');
    count = 1_000;
    now = 7_000;
    assert.equal(meter.line(true), 'Claims    [########################] 1,000 of 1,000');
  });
});
