// Lives of payments at Stripe: after every event was delivered, balances equal the facts. LIVES=5000 plays so many, SEED
// draws others.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSession, type Session } from '../../support/sessions.ts';
import { withChangedFunction } from '../effects_support.ts';
import { WebhookWorld } from '../world.ts';
import { addEndpoints, deliver, drawLives, endsOf, findWrong } from './play.ts';

const LIVES = Number(process.env.LIVES ?? 150);
const SEED = Number(process.env.SEED ?? 15);
/** Of a control, which has to be found wrong and not to be measured. */
const CONTROL_LIVES = 60;
const ENDS = [
  'success',
  'skipped: already known',
  'skipped: names no payment',
  'skipped: no handler for',
  'skipped: older than what is known',
];

/** The rule that was here before: a dispute takes its amount when it is there, and gives it back when its status is won. */
const BY_STATUS = {
  from: `jsonb_array_elements(nullif(p_dispute -> 'balance_transactions', 'null')) t`,
  to: `jsonb_array_elements(case when p_dispute ->> 'status' like 'warning%' then '[]'::jsonb else
    jsonb_build_array(p_dispute || jsonb_build_object('amount', -(p_dispute ->> 'amount')::bigint))
    || case p_dispute ->> 'status' when 'won' then
      jsonb_build_array(p_dispute || jsonb_build_object('id', (p_dispute ->> 'id') || '_won')) else '[]' end
  end) t`,
};

describe('lives of payments', () => {
  let world: WebhookWorld;
  let owner: Session;
  before(async () => {
    world = await WebhookWorld.start();
    owner = await openSession(world.databases.db2.url);
    await addEndpoints(world);
  });
  after(async () => {
    await owner?.close();
    await world?.stop();
  });

  test(`balances equal the facts of ${LIVES} lives, shuffled, duplicated and concurrent, queued and inline`, async (t) => {
    const lives = drawLives(LIVES, SEED);
    const deliveries = await deliver(world, lives, SEED);
    const wrong = await findWrong(world, lives);
    const ends = await endsOf(world);
    t.diagnostic(
      `seed ${SEED}: ${lives.length} lives, ${deliveries} deliveries, ${wrong.length} wrong; ${JSON.stringify(ends)}`,
    );
    assert.deepEqual(wrong, []);
    assert.deepEqual(
      Object.keys(ends).filter((how) => !ENDS.includes(how)),
      [],
    );
    assert.deepEqual(
      new Set(lives.map(({ naming }) => naming)).size,
      5,
      'not every way to name a user was drawn',
    );
  });

  test('balances would be wrong if the status of a dispute moved its money', async (t) => {
    const lives = drawLives(CONTROL_LIVES, SEED, 'control');
    const wrong = await withChangedFunction(
      owner,
      'webhook.note_dispute',
      BY_STATUS.from,
      BY_STATUS.to,
      async () => {
        await deliver(world, lives, SEED);
        return findWrong(world, lives);
      },
    );
    t.diagnostic(`${wrong.length} of ${lives.length} lives are wrong`);
    assert.ok(wrong.length > 0);
  });
});
