// Against a running stack: deno test --allow-net --allow-env, with the addresses and secrets of .sluice/env in the
// environment.

import { equal, invoke, need } from '../_conformance/stack.ts';
import { webHmac } from '../_shared/webhook/hmac.ts';
import { stripe } from '../_shared/webhook/providers/stripe.ts';

const test = Deno.test;

async function deliver(id: string, secret = need('STRIPE_WEBHOOK_SECRET')) {
  const body = JSON.stringify({ id, type: 'edge.test', created: 1_770_000_000 });
  const signed = await stripe.sign(
    { method: 'POST', url: '', body: new TextEncoder().encode(body) },
    secret,
    { port: webHmac, nowSec: Math.floor(Date.now() / 1000) },
  );
  // No token: providers have none.
  return invoke('webhooks/stripe', { method: 'POST', body, headers: { ...signed, authorization: '' } });
}

test('a signed event is recorded once, however often it is delivered', async () => {
  const id = `evt_${crypto.randomUUID()}`;
  const answer = (status: string) => ({
    status: 200,
    body: { status, events: [{ event_id: id, status }] },
  });
  equal(await deliver(id), answer('recorded'));
  equal(await deliver(id), answer('duplicate'));
});

test('the service role key does not stand in for a signature', async () => {
  const { status, body } = await invoke('webhooks/stripe', { method: 'POST', body: '{"id":"evt_x"}' });
  equal([status, body.error.code], [401, 'bad_signature']);
});

test('an event signed with another secret is refused', async () => {
  const { status, body } = await deliver('evt_forged', 'whsec_other');
  equal([status, body.error.code], [401, 'bad_signature']);
});
