// The paid demo lets Stripe fall silent while holds run out, and always lets it answer again.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { silenceStripe } from '../../src/demo/paid/silence.ts';
import { StandInClient } from '../../src/stripe_stand_in/client.ts';
import { StripeStandIn } from '../../src/stripe_stand_in/stand_in.ts';

const KEY = 'sk_live_stand_in_0123456789';

describe('the silence of Stripe in a paid demo', () => {
  let stripe: StripeStandIn;
  let standIn: StandInClient;
  before(async () => {
    stripe = await StripeStandIn.start({ keys: { [KEY]: { rights: 'all' } } });
    standIn = new StandInClient(stripe.url, KEY);
  });
  after(() => stripe?.stop());

  const answers = () =>
    fetch(`${stripe.url}/v1/events`, { headers: { authorization: `Bearer ${KEY}` } }).then(
      ({ ok }) => ok,
      () => false,
    );

  it('begins when the first hold ends, and ends by itself', async () => {
    const seen: [line: string, answers: Promise<boolean>][] = [];
    const say = (line: string) => seen.push([line, answers()]);
    const { signal } = new AbortController();
    assert.equal(await answers(), true);
    await silenceStripe({ standIn, holdSec: 0, graceSec: 0, say, signal });
    assert.deepEqual(
      await Promise.all(seen.map(async ([line, isUp]) => `${line.slice(0, 22)} ${await isUp}`)),
      ['Stripe does not answer false', 'Stripe answers again.  true'],
    );
  });

  it('does not begin where the show is over before', async () => {
    const ending = new AbortController();
    const lines: string[] = [];
    const silence = silenceStripe({
      standIn,
      holdSec: 60,
      graceSec: 5,
      say: (line) => lines.push(line),
      signal: ending.signal,
    });
    ending.abort();
    await silence;
    assert.deepEqual([lines, await answers()], [[], true]);
  });
});
