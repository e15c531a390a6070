import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSign, headersOf, type SigningKey } from '#core/bridge/hook_request.ts';
import { payload, poolConfig, uuid, World } from './support.ts';

const secretOf = (bytes: number, fill = 'k') => `whsec_${Buffer.alloc(bytes, fill).toString('base64')}`;
const open = (secret: string): SigningKey => ({
  sign: (id, timestamp, body) => `v1,${secret.slice(-6)}/${id}/${timestamp.toISOString()}/${body}`,
});
const CALL = { id: 'commit_k1', idempotencyKey: 'k1', claimId: 'c1' };
const NOW_MS = 1_700_000_000_999;

test('a signed request has the three headers of Standard Webhooks besides its key', () => {
  const sign = createSign(secretOf(32), open);
  assert.deepEqual(headersOf(CALL, '{}', sign, NOW_MS), {
    'content-type': 'application/json',
    'x-idempotency-key': 'k1',
    'x-claim-id': 'c1',
    'webhook-id': 'commit_k1',
    'webhook-timestamp': '1700000000',
    'webhook-signature': `v1,${secretOf(32).slice(-6)}/commit_k1/2023-11-14T22:13:20.000Z/{}`,
  });
});

test('without a secret a request is as it was before there were signatures', () => {
  for (const none of [undefined, '', '  \n'])
    assert.deepEqual(headersOf(CALL, '{}', createSign(none, open), NOW_MS), {
      'content-type': 'application/json',
      'x-idempotency-key': 'k1',
      'x-claim-id': 'c1',
    });
});

test('a call that belongs to a trace says so, signed or not', () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  for (const sign of [undefined, createSign(secretOf(32), open)]) {
    assert.equal(headersOf({ ...CALL, traceparent }, '{}', sign, NOW_MS).traceparent, traceparent);
    assert.equal('traceparent' in headersOf(CALL, '{}', sign, NOW_MS), false);
  }
});

test('several secrets make several signatures, in their order', () => {
  const [one, two] = [secretOf(24, 'a'), secretOf(64, 'b')];
  const signature = createSign(` ${one}  ${two}\n`, open)?.('i', 0, 'b');
  assert.deepEqual(
    signature?.split(' ').map((each) => each.slice(3, 9)),
    [one, two].map((secret) => secret.slice(-6)),
  );
});

const MALFORMED: Record<string, string> = {
  'no prefix': secretOf(32).slice('whsec_'.length),
  'another prefix': secretOf(32).replace('whsec_', 'whpk_'),
  'nothing after the prefix': 'whsec_',
  'not base64': `whsec_${'*'.repeat(44)}`,
  'base64 for URLs': `whsec_${'-_'.repeat(22)}`,
  'base64 that is cut off': secretOf(32).slice(0, -1),
  'too short': secretOf(23),
  'too long': secretOf(65),
};
for (const [what, secret] of Object.entries(MALFORMED))
  test(`a secret is refused without being told: ${what}`, () => {
    assert.throws(() => createSign(`${secretOf(32)} ${secret}`, open), {
      name: 'TypeError',
      message: 'secret 2 of 2 is not whsec_ and 24 to 64 bytes in base64',
    });
  });

test('the validation and the commit of one claim have different ids, each the same at every try', async () => {
  const world = new World();
  const hooks = {
    validation_webhook_url: 'https://example.com/v',
    commit_webhook_url: 'https://example.com/c',
  };
  world.pools.set('pool', poolConfig('pool', hooks));
  world.answer = (url) => (url.endsWith('/v') ? 200 : 404);
  world.send(payload(1));
  await world.step();
  world.nowMs += 3_600_000;
  await world.step();
  const key = uuid(1_000_001);
  assert.deepEqual(
    world.posts.map(({ url, id, key: one }) => [url.at(-1), id, one]),
    [
      ['v', `validation_${key}`, key],
      ['c', `commit_${key}`, key],
      ['c', `commit_${key}`, key],
    ],
  );
});

test('a first claim of a slot is known by the slot, a later one by both, a message by hand by its slot', async () => {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { commit_webhook_url: 'https://example.com/c' }));
  world.isFirst = (claimId) => claimId !== uuid(2);
  world.send(payload(1));
  world.send(payload(2));
  world.send(payload(3, { claim_id: undefined }), { claim_state: null });
  world.send(payload(4, { claim_id: uuid(4).toUpperCase() }));
  await world.step();
  assert.deepEqual(world.posts.map(({ key, claimId }) => [key, claimId]).sort(), [
    [uuid(1_000_001), uuid(1)],
    [`${uuid(1_000_002)}:${uuid(2)}`, uuid(2)],
    [uuid(1_000_003), uuid(1_000_003)],
    [uuid(1_000_004), uuid(4).toUpperCase()],
  ]);
});

test('a claim that the intake does not know is named, and one that has ended since is not sent', async () => {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { commit_webhook_url: 'https://example.com/c' }));
  world.isFirst = () => undefined;
  world.send(payload(1), { claim_state: null });
  const ended = world.send(payload(2));
  await world.step();
  assert.deepEqual(
    world.posts.map(({ key }) => key),
    [`${uuid(1_000_001)}:${uuid(1)}`],
  );
  assert.deepEqual(world.endOf(ended)?.verdict, 'gone');
});

test('which claims are first is asked for hooks only', async () => {
  const world = new World();
  world.isFirst = () => assert.fail('asked');
  world.send(payload(1));
  assert.deepEqual((await world.step()).outcomes, { committed: 1 });
});

test('the commit of a validated claim says validated, in this delivery and in the next', async () => {
  const world = new World();
  const hooks = { validation_webhook_url: 'https://example.com/v' };
  world.pools.set('hooked', poolConfig('hooked', { ...hooks, commit_webhook_url: 'https://example.com/c' }));
  world.pools.set('own', poolConfig('own', { ...hooks, commit_rpc_name: 'my_commit' }));
  world.pools.set('unasked', poolConfig('unasked', { commit_webhook_url: 'https://example.com/u' }));
  world.send(payload(1, { pool_id: 'hooked' }));
  world.send(payload(2, { pool_id: 'own' }));
  world.send(payload(3, { pool_id: 'hooked' }), { claim_state: 'validated' });
  world.send(payload(4, { pool_id: 'unasked' }));
  await world.step();
  const told = world.posts.map(({ url, payload: { claim_id, state } }) => [url.at(-1), claim_id, state]);
  assert.deepEqual(told.sort(), [
    ['c', uuid(1), 'validated'],
    ['c', uuid(3), 'validated'],
    ['u', uuid(4), 'queued'],
    ['v', uuid(1), 'queued'],
    ['v', uuid(2), 'queued'],
  ]);
  assert.deepEqual(
    world.customCalls.map(({ payload: { state } }) => state),
    ['validated'],
  );
});
