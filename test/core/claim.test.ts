import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ClaimOutcome, type ClaimProof, ClaimRoutes } from '#core/claim.ts';
import {
  ADMIN_KEY,
  askRoutes,
  CLAIM_ID,
  CLAIMED_AT,
  claimDoor,
  memoryPorts,
  record,
  SLOT_ID,
} from './support.ts';

const as = (token: string) => ({ authorization: `Bearer ${token}` });

describe('a claim', () => {
  it('is answered with 201 and everything the buyer needs', async () => {
    const { claim } = claimDoor();
    const { status, json } = await claim({ user_id: 'ann', request_id: 'r1' });
    assert.equal(status, 201);
    assert.deepEqual(json, {
      claim_id: CLAIM_ID,
      resource_id: SLOT_ID,
      pool_id: 'p',
      user_id: 'ann',
      request_id: 'r1',
      status: 'queued',
      claimed_at: CLAIMED_AT,
      hold_until: null,
    });
  });

  const outcomes: [ClaimOutcome['outcome'], number][] = [
    ['same', 200],
    ['sold_out', 409],
    ['limit', 409],
    ['not_enough', 409],
    ['quantity_refused', 422],
    ['secret_required', 401],
    ['closed', 409],
    ['address_limit', 409],
    ['challenge_used', 409],
    ['challenge_required', 403],
    ['guests_refused', 403],
    ['secret_required', 401],
    ['quantity_refused', 422],
    ['not_enough', 409],
    ['server_required', 403],
    ['unknown_pool', 404],
    ['auth_required', 401],
    ['busy', 503],
  ];
  for (const [result, expected] of outcomes) {
    it(`that comes out as ${result} is answered with ${expected}`, async () => {
      const { claim, memory } = claimDoor();
      memory.result = result;
      const { status, json } = await claim({ user_id: 'ann' });
      assert.equal(status, expected);
      if (expected > 299) assert.deepEqual([json.error.code, json.error.request_id], [result, 'request-1']);
    });
  }

  it('takes the Idempotency-Key where the body has no request_id', async () => {
    const { claim, memory } = claimDoor();
    await claim({ user_id: 'ann' }, { 'idempotency-key': 'key-1' });
    await claim({ user_id: 'ann', request_id: 'key-2' }, { 'idempotency-key': 'key-2' });
    await claim({ user_id: 'ann' });
    assert.deepEqual(
      memory.seen.map((request) => request.requestId),
      ['key-1', 'key-2', null],
    );
  });

  it('is refused with two different ids, or an id that cannot be printed', async () => {
    const { claim, memory } = claimDoor();
    assert.equal((await claim({ user_id: 'ann', request_id: 'a' }, { 'idempotency-key': 'b' })).status, 422);
    for (const key of ['', 'a b', 'é', 'x'.repeat(201)]) {
      assert.equal((await claim({ user_id: 'ann' }, { 'idempotency-key': key })).status, 422, key);
    }
    assert.deepEqual(memory.seen, []);
  });

  it('asks for as many slots as its quantity says, and counts all of them against the address', async () => {
    const counted: number[] = [];
    const { claim, memory } = claimDoor({ admit: (_, slots) => void counted.push(slots) });
    await claim({ user_id: 'ann', quantity: 3 });
    await claim({ user_id: 'ann', quantity: 1 });
    await claim({ user_id: 'ann' });
    assert.deepEqual(
      memory.seen.map(({ quantity }) => quantity),
      [3, 1, undefined],
    );
    assert.deepEqual(counted, [1, 2, 1, 1]);
  });

  for (const quantity of [0, -1, 11, 1.5, '2', null, [2], true]) {
    it(`is refused with the quantity ${JSON.stringify(quantity)}, in words`, async () => {
      const { claim, memory } = claimDoor();
      const { status, json } = await claim({ user_id: 'ann', quantity });
      assert.deepEqual([status, json.error.code], [422, 'invalid_input']);
      assert.match(json.error.hint, /^quantity must be (of type integer|at least 1|at most 10)\./);
      assert.deepEqual(memory.seen, []);
    });
  }

  it('is one statement for all who ask at once, and each gets its own answer', async () => {
    const { claim, memory } = claimDoor();
    const users = ['ann', 'bob', 'cat'];
    const answers = await Promise.all(users.map((user_id) => claim({ user_id })));
    assert.deepEqual(
      answers.map((answer) => answer.json.user_id),
      users,
    );
    assert.equal(memory.batches, 1);
  });
});

describe('who may claim for whom', () => {
  const address = '203.0.113.1';
  const secret = 'a-secret-of-my-own';
  const allowed: [string, Record<string, string>, unknown, string, boolean, ClaimProof | null][] = [
    ['an unverified user', {}, { user_id: 'ann' }, 'ann', false, { address }],
    [
      'a stranger with a secret, which is kept as a hash',
      {},
      { user_id: 'ann', secret },
      'ann',
      false,
      { address, secret_hash: `hash of ${secret}` },
    ],
    ['the anon key, unverified', as('anon-token'), { user_id: 'ann' }, 'ann', false, { address }],
    ['a signed-in user, for itself', as('ann-token'), { user_id: 'ann' }, 'ann', true, { address }],
    ['a signed-in user, without naming itself', as('ann-token'), {}, 'ann', true, { address }],
    ['a signed-in user, whose secret is not needed', as('ann-token'), { secret }, 'ann', true, { address }],
    ['an anonymous sign-in, as a guest', as('guest-token'), {}, 'guest-1', true, { address, guest: true }],
    ['the service, for any user', as('service-token'), { user_id: 'bob' }, 'bob', true, null],
    ['the operator, for any user', as(ADMIN_KEY), { user_id: 'bob' }, 'bob', true, null],
  ];
  for (const [name, headers, body, userId, verified, proof] of allowed) {
    it(`allows ${name}`, async () => {
      const { claim, memory } = claimDoor();
      assert.equal((await claim(body, headers)).status, 201);
      assert.deepEqual(memory.seen, [
        { poolId: 'p', userId, requestId: null, quantity: undefined, verified, proof },
      ]);
    });
  }

  const refused: [string, Record<string, string>, unknown, number][] = [
    ['a signed-in user for another', as('ann-token'), { user_id: 'bob' }, 403],
    ['no token and no user_id', {}, {}, 422],
    ['the service without a user_id', as('service-token'), {}, 422],
    ['a forged token', as('forged'), { user_id: 'ann' }, 401],
    ['a user token without a subject', as('nameless-token'), { user_id: 'ann' }, 401],
    ['a token without a role', as('roleless-token'), { user_id: 'ann' }, 401],
    ['Bearer undefined', as('undefined'), { user_id: 'ann' }, 401],
    ['an empty header', { authorization: '' }, { user_id: 'ann' }, 401],
    ['a bare Bearer', { authorization: 'Bearer ' }, { user_id: 'ann' }, 401],
    ['another scheme', { authorization: 'Basic YTpi' }, { user_id: 'ann' }, 401],
    ['two tokens', as('ann-token, bob-token'), { user_id: 'ann' }, 401],
  ];
  for (const [name, headers, body, expected] of refused) {
    it(`refuses ${name} with ${expected}`, async () => {
      const { claim, memory } = claimDoor();
      const { status, headers: sent } = await claim(body, headers);
      assert.equal(status, expected);
      if (expected === 401) assert.equal(sent['www-authenticate'], 'Bearer');
      assert.deepEqual(memory.seen, []);
    });
  }

  it('looks at the token before it reads the body', async () => {
    const { claim } = claimDoor();
    assert.equal((await claim('{broken', as('forged'))).status, 401);
  });
});

describe('who may see and release a claim', () => {
  const path = `/v1/claims/${CLAIM_ID}`;
  const mine = record({ verified: true });
  const anybodys = record({ verified: false });
  const secret = { 'x-claim-secret': 'a secret of my own' };
  const locked = record({ verified: false, secret_matches: false });
  const opened = record({ verified: false, secret_matches: true });

  const cases: [string, typeof mine, Record<string, string>, number, string[]?][] = [
    ['an unverified claim, the right secret', opened, secret, 200, ['user', 'ann']],
    ['an unverified claim, a wrong secret', locked, secret, 404],
    ['an unverified claim, no secret', locked, {}, 404],
    ['an unverified claim, a signed-in user of its name', locked, as('ann-token'), 404],
    ['an unverified claim with a secret, the operator', locked, as(ADMIN_KEY), 200, ['operator', 'ada']],
    ['a verified claim, its owner', mine, as('ann-token'), 200, ['user', 'ann']],
    ['a verified claim, the service', mine, as('service-token'), 200, ['operator', 'service_role']],
    ['a verified claim, the operator', mine, as(ADMIN_KEY), 200, ['operator', 'ada']],
    ['an unverified claim, the operator', anybodys, as(ADMIN_KEY), 200, ['operator', 'ada']],
    ['a verified claim, another user', mine, as('bob-token'), 404],
    ['a verified claim, no credentials', mine, {}, 404],
    ['a verified claim, the anon key', mine, as('anon-token'), 404],
    ['a claim, a forged token', anybodys, as('forged'), 401],
  ];
  for (const [name, claim, headers, expected, releasedAs] of cases) {
    it(`${name}: ${expected}`, async () => {
      const { ask, memory } = claimDoor();
      memory.claim = claim;
      assert.equal((await ask({ path, headers })).status, expected);
      assert.equal((await ask({ method: 'DELETE', path, headers })).status, expected);
      assert.deepEqual(memory.released, releasedAs === undefined ? [] : [[CLAIM_ID, ...releasedAs]]);
    });
  }

  it('shows the claim with its status, and not how it was proven', async () => {
    const { ask, memory } = claimDoor();
    memory.claim = opened;
    const { json } = await ask({ path, headers: secret });
    assert.deepEqual(
      [json.status, json.user_id, 'verified' in json, 'state' in json, 'secret_matches' in json],
      ['queued', 'ann', false, false, false],
    );
    assert.equal((await ask({ method: 'DELETE', path, headers: secret })).json.status, 'released');
  });

  it('shows the status alone of a claim without a secret, and releases it for no stranger', async () => {
    const { ask, memory } = claimDoor();
    memory.claim = anybodys;
    for (const headers of [{}, secret, as('ann-token')]) {
      assert.deepEqual((await ask({ path, headers })).json, { claim_id: CLAIM_ID, status: 'queued' });
      const { status, json } = await ask({ method: 'DELETE', path, headers });
      assert.deepEqual([status, json.error.code], [403, 'not_yours']);
    }
    assert.deepEqual(memory.released, []);
  });

  it('does not know a claim that is not there, and refuses an id that is not a uuid', async () => {
    const { ask } = claimDoor();
    assert.equal((await ask({ path })).json.error.code, 'unknown_claim');
    assert.equal((await ask({ path: '/v1/claims/42' })).status, 422);
  });
});

describe('a pool that does not exist', () => {
  it('is asked for once a second by its name, and found after that second; others are asked for as ever', async () => {
    const ports = memoryPorts();
    const { memory } = ports;
    let nowMs = 0;
    const ask = askRoutes(new ClaimRoutes({ ...ports, now: () => nowMs }).routes());
    const claim = async (pool: string) => {
      const body = { user_id: 'ann' };
      return (await ask({ method: 'POST', path: `/v1/pools/${pool}/claims`, body })).status;
    };
    memory.result = 'unknown_pool';
    for (let time = 0; time < 3; time++) assert.equal(await claim('made-up'), 404);
    assert.equal(memory.batches, 1);
    memory.result = 'claimed';
    assert.equal(await claim('here'), 201);
    nowMs = 999;
    assert.equal(await claim('made-up'), 404);
    assert.equal(memory.batches, 2);
    nowMs = 1_000;
    assert.equal(await claim('made-up'), 201);
    assert.equal(memory.batches, 3);
  });
});
