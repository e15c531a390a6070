import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fromBase64, toHex, utf8 } from '#core/webhook/bytes.ts';
import { type HmacPort, webHmac } from '#core/webhook/hmac.ts';
import { handshake, PROVIDER_NAMES, providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../../src/webhook/hmac.ts';
import { type Case, problemOf, VECTORS, validCases, vectorCases } from './cases.ts';
import { refusedCases } from './refused_cases.ts';

const PORTS: Record<string, HmacPort> = { 'node:crypto': nodeHmac, WebCrypto: webHmac };

for (const [name, port] of Object.entries(PORTS)) {
  describe(`with ${name}`, () => {
    for (const one of vectorCases()) {
      test(one.name, async () => assert.equal(await problemOf(one, port), undefined));
    }

    test('every provider verifies and reads what it signs', async () => {
      const cases = await validCases(port);
      assert.deepEqual(
        [...new Set(cases.map(({ provider }) => provider))].sort(),
        [...PROVIDER_NAMES].sort(),
      );
      assert.deepEqual(await problemsOf(cases, port), []);
    });

    test('missing, doubled, misspelled, foreign and untimely signatures are refused, each with its reason', async () => {
      const cases = await refusedCases(port);
      assert.ok(cases.length > 200, String(cases.length));
      assert.deepEqual(await problemsOf(cases, port), []);
    });

    test('the vendor’s plain HMAC examples come out', async () => {
      const plain = VECTORS.filter(({ provider }) => provider === 'stripe-hmac');
      assert.equal(plain.length, 3);
      for (const { secret = '', message = '', hex } of plain) {
        assert.equal(toHex(await port.hmac('SHA-256', utf8(secret), utf8(message))), hex);
      }
    });
  });
}

test('a verifier that ignores the time fails exactly the cases with an untimely one', async () => {
  const cases = [...vectorCases(), ...(await refusedCases())];
  const untimely = cases.filter(({ expected }) => expected === 'stale').map(({ name }) => name);
  // The clock always stands where the request says.
  const ignorant = cases.map((one) => ({ ...one, nowSec: claimedTime(one) ?? one.nowSec }));
  const failed = (await problemsOf(ignorant, nodeHmac)).map((problem) => problem.split(' → ')[0]);
  assert.ok(untimely.length > 10);
  assert.deepEqual(failed, untimely);
});

test('of one signature in four spellings only the canonical one is read', () => {
  const { texts = [] } = VECTORS.find(({ provider }) => provider === 'replay-malleability') ?? {};
  assert.deepEqual(
    texts.map((text) => fromBase64(text)?.length),
    [32, undefined, undefined, undefined],
  );
});

test('Meta’s handshake is answered with the challenge, and only for the right token', () => {
  const { request = '', response } = VECTORS.find(({ provider }) => provider === 'meta-handshake') ?? {};
  const query = request.slice(request.indexOf('?') + 1);
  assert.equal(handshake(query, 'meatyhamhock'), response?.body);
  assert.equal(handshake(query, 'other'), undefined);
  assert.equal(handshake(query, ''), undefined);
  assert.equal(handshake(query, undefined), undefined);
  assert.equal(handshake(query.replace('subscribe', 'other'), 'meatyhamhock'), undefined);
  assert.equal(handshake(`${query}&hub.verify_token=meatyhamhock`, 'meatyhamhock'), undefined);
  assert.equal(handshake(query.replace('1158201444', '%3Cscript%3E%0a'), 'meatyhamhock'), undefined);
  assert.equal(handshake('hub.mode=subscribe&hub.verify_token=&hub.challenge=1', ''), undefined);
});

test('an unknown name has no provider, not even one of Object’s own names', () => {
  for (const name of ['', 'Stripe', 'constructor', '__proto__', 'none'])
    assert.equal(providerNamed(name), undefined);
});

async function problemsOf(cases: readonly Case[], port: HmacPort): Promise<string[]> {
  const found = await Promise.all(cases.map(async (one) => [one.name, await problemOf(one, port)]));
  return found.filter(([, problem]) => problem !== undefined).map((pair) => pair.join(' → '));
}

/** The time that a request says it was signed at, where it says one that can be read. */
function claimedTime({ request: { headers } }: Case): number | undefined {
  const text = Object.entries(headers)
    .map(([name, value]) => (name === 'stripe-signature' ? /t=(\d{10}),/.exec(String(value))?.[1] : value))
    .find((value) => typeof value === 'string' && /^\d{10}$/.test(value));
  return text === undefined ? undefined : Number(text);
}
