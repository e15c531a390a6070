// Against a running stack: deno test --allow-net --allow-env, with the addresses and secrets of .sluice/env in the environment, and
// SLUICE_JWT_SECRET, with which the users' tokens are signed.

import { SignJWT } from 'npm:jose@6';
import { db1, drainUntilIdle, equal, invoke, makePool, need, ok } from '../_conformance/stack.ts';

const test = Deno.test;

const PRICE = 1_250;
const PAID = {
  confirm_by: 'payment',
  price: PRICE,
  currency: 'eur',
  payment_tenant: 'stripe',
  hold_sec: 600,
  max_quantity: 4,
};
const SECRET = 'a-secret-of-the-buyer';

async function hexOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Two seats held for the holder of the secret, or for a user that is verified; the id of the first claim. */
async function hold(poolId: string, user?: string): Promise<string> {
  const proof = { secret_hash: await hexOf(SECRET), address: '127.0.0.1' };
  const [claim] = await ok<{ outcome: string; claim_id: string }[]>(
    db1.rpc('claim_batch', {
      p_pool_ids: [poolId],
      p_user_ids: [user ?? 'ann'],
      p_request_ids: [crypto.randomUUID()],
      p_verified: [user !== undefined],
      p_proofs: [user === undefined ? proof : null],
      p_quantities: [2],
    }),
  );
  equal(claim?.outcome, 'claimed');
  return claim?.claim_id ?? '';
}

const checkout = (claimId: string, headers: Record<string, string>) =>
  invoke(`claims/${claimId}/checkout`, { method: 'POST', headers });

const withSecret = (secret: string) => ({ authorization: '', 'x-claim-secret': secret });

async function asUser(sub: string, secret = need('SLUICE_JWT_SECRET')): Promise<Record<string, string>> {
  const token = await new SignJWT({ role: 'authenticated', sub })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(secret));
  return { authorization: `Bearer ${token}` };
}

test('a buyer with the secret of the claim gets one page to pay on, however often it asks', async () => {
  const claimId = await hold(await makePool(2, PAID));
  const made = await checkout(claimId, withSecret(SECRET));
  equal([made.status, made.body.amount, made.body.currency], [201, 2 * PRICE, 'eur']);
  equal(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(made.body.hold_until), true);
  equal(await checkout(claimId, withSecret(SECRET)), { status: 200, body: made.body });
});

test('another secret, or none, does not find the claim', async () => {
  const claimId = await hold(await makePool(2, PAID));
  for (const headers of [withSecret('another-secret-0123456789'), { authorization: '' }]) {
    const { status, body } = await checkout(claimId, headers);
    equal([status, body.error.code], [404, 'unknown_claim']);
  }
});

test('a verified claim is for its own user alone, and for the service role key', async () => {
  const claimId = await hold(await makePool(2, PAID), 'user-1');
  const refused = await checkout(claimId, await asUser('user-2'));
  equal([refused.status, refused.body.error.code], [404, 'unknown_claim']);
  const forged = await checkout(claimId, await asUser('user-1', 'a secret that this project never had'));
  equal([forged.status, forged.body.error.code], [401, 'auth_required']);
  equal((await checkout(claimId, await asUser('user-1'))).status, 201);
  equal((await checkout(claimId, {})).status, 200);
});

test('a claim of a pool that nothing is paid for has no checkout', async () => {
  const poolId = await makePool(2, { max_quantity: 2 });
  const { status, body } = await checkout(await hold(poolId), withSecret(SECRET));
  equal([status, body.error.code], [409, 'not_for_payment']);
  // It is on the queue, where other tests count.
  await drainUntilIdle();
});
