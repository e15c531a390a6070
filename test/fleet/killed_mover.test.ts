import assert from 'node:assert/strict';
import test from 'node:test';
import { furnishLargePool, moveAbout } from './moves.ts';
import { query, startFleet } from './support.ts';

test('a mover that is killed at random and run again leaves every slot and claim there once', async (t) => {
  const { cells } = await startFleet(t, { withLedger: false });
  const [home] = cells;
  assert.ok(home);
  await furnishLargePool(home);
  const { wrong, kills } = await moveAbout(cells, 2, 20_260_224);
  assert.deepEqual(wrong, []);
  assert.ok(kills > 0, 'the seed kills a mover at least once');
  // The control: one claim that is missing is noticed.
  const lose = ({ url }: { url: string }) =>
    query(
      url,
      'delete from public.claims where claim_id = (select min(claim_id::text)::uuid from public.claims)',
    );
  assert.deepEqual((await moveAbout(cells, 1, 1, lose)).wrong, [1]);
});
