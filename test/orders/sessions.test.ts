import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findSessionDifferences, type KnownCheckout } from '#core/webhook/backfill/sessions.ts';
import { stretchOf } from '#core/webhook/backfill/source.ts';

const ours = (id: string, change: Record<string, unknown> = {}) => ({
  id,
  status: 'open',
  payment_status: 'unpaid',
  payment_intent: null,
  metadata: { claim_id: 'order-1', checkout: 'order-1:1' },
  ...change,
});

/** `later` is what the second look finds. */
async function compare(sessions: object[], known: KnownCheckout[], decided: string[], later = sessions) {
  let looks = 0;
  const asked: string[] = [];
  const found = await findSessionDifferences(
    {
      tenant: 'stripe',
      ask: async (path) => {
        asked.push(path);
        if (path.includes('?')) return { data: sessions, has_more: false } as never;
        return later.find(({ id }: { id?: string }) => path.endsWith(`/${id}`)) as never;
      },
      findCheckouts: async (ids) => known.filter(({ session_id }) => ids.includes(session_id)),
      decided: async (keys) => decided.filter((key) => keys.includes(key)),
      onProgress: () => looks++,
    },
    stretchOf(0, 1_000),
  );
  return { found: found.map(({ kind, payment }) => `${kind} ${payment}`), asked: asked.length, looks };
}

const known = (session_id: string, is_over: boolean): KnownCheckout => ({
  session_id,
  order_id: 'order-1',
  is_over,
});
const PAID = { status: 'complete', payment_status: 'paid', payment_intent: 'pi_1' };

describe('sessions at Stripe beside the intake', () => {
  it('are in order where the intake knows the open ones and has decided about the paid ones', async () => {
    const sessions = [ours('cs_1'), ours('cs_2', PAID), ours('cs_3', { status: 'expired' })];
    const { found, asked } = await compare(sessions, [known('cs_1', false)], ['stripe/pi_1']);
    assert.deepEqual([found, asked], [[], 1]);
  });

  it('are a difference where one is open for an order that is over, or that the intake does not know', async () => {
    const { found } = await compare([ours('cs_1'), ours('cs_2')], [known('cs_1', true)], []);
    assert.deepEqual(found, ['session_open cs_1', 'session_unknown cs_2']);
  });

  it('are a difference where one is paid and its payment is undecided, of this tenant', async () => {
    const { found } = await compare([ours('cs_1', PAID)], [known('cs_1', true)], ['stripe:eu/pi_1']);
    assert.deepEqual(found, ['session_undecided pi_1']);
  });

  it('are no difference where the second look finds it mended', async () => {
    const later = [ours('cs_1', { status: 'expired' })];
    assert.deepEqual((await compare([ours('cs_1')], [known('cs_1', true)], [], later)).found, []);
  });

  it('of others are left alone', async () => {
    const sessions = [ours('cs_1', { metadata: {} }), ours('cs_2', { metadata: { claim_id: 'order-1' } })];
    assert.deepEqual((await compare(sessions, [], [])).found, []);
  });
});
