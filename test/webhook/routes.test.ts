import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { addTableEndpoints, checkHandshake, checkRow, checkTrace, TABLE, type Target } from './requests.ts';
import { allowSecrets, paymentEvent, SECRETS, WebhookWorld } from './world.ts';

describe('the webhook door on Node', () => {
  let world: WebhookWorld;
  let target: Target;
  before(async () => {
    world = await WebhookWorld.start();
    target = { base: `${world.server.url}/webhooks`, secrets: SECRETS, db2: world.db2 };
    await addTableEndpoints(target);
  });
  after(() => world?.stop());

  for (const row of TABLE)
    it(`answers ${row.expected.join(' ')} to ${row.name}`, () => checkRow(row, target));

  it('keeps what it refused as bytes, and raises one alarm for another body', () => checkTrace(target));

  it("answers Meta's handshake with the challenge as text", () => checkHandshake(target));

  it('tells a provider that signs the address what to set on an endpoint without one', async () => {
    const answer = await world.send('twilio-anywhere', 'twilio', 'CallSid=CA4&CallStatus=completed', {
      headers: { 'content-type': 'application/x-www-form-urlencoded', host: 'shop.example' },
    });
    assert.equal(answer.status, 401);
    assert.match(answer.json.error.hint, /^no_public_url: .* set it as public_url of the endpoint\.$/);
  });

  it('takes every secret of the endpoint, and the new one within a second of a rotation', async () => {
    await world.addEndpoint('rotated', 'stripe', 'queued');
    await allowSecrets(world.db2, ['STRIPE_NEXT_SECRET']);
    SECRETS.STRIPE_NEXT_SECRET = 'whsec_of_the_next_year';
    const next = (id: string) =>
      world.send('rotated', 'stripe', paymentEvent(id), { secret: SECRETS.STRIPE_NEXT_SECRET ?? '' });
    assert.equal((await next('evt_r1')).status, 401);
    await world.db2.query(`select webhook.change_endpoint('rotated', $1, 'test')`, [
      { secret_names: ['STRIPE_NEXT_SECRET', 'STRIPE_WEBHOOK_SECRET'] },
    ]);
    const deadline = Date.now() + 5_000;
    while ((await next('evt_r1')).status !== 200) assert.ok(Date.now() < deadline, 'never rotated');
    assert.equal((await world.send('rotated', 'stripe', paymentEvent('evt_r2'))).status, 200);
  });

  it('stops taking events for an endpoint within a second of its being switched off', async () => {
    await world.addEndpoint('short-lived', 'stripe', 'queued');
    const post = (id: string) => world.send('short-lived', 'stripe', paymentEvent(id));
    assert.equal((await post('evt_s0')).status, 200);
    await world.db2.query(`select webhook.change_endpoint('short-lived', '{"is_active": false}', 'test')`);
    const deadline = Date.now() + 5_000;
    for (let turn = 1; (await post(`evt_s${turn}`)).status !== 404; turn++)
      assert.ok(Date.now() < deadline, 'never stopped');
  });
});
