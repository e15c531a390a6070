import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HmacPort } from '#core/webhook/hmac.ts';
import type { SignedRequest } from '#core/webhook/provider.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../../src/webhook/hmac.ts';
import { type Case, validCases } from './cases.ts';
import { SIGNATURE_HEADERS, TIMESTAMP_HEADERS } from './refused_cases.ts';

interface Flipped {
  readonly where: string;
  readonly request: SignedRequest;
}

describe('every single flipped bit is refused', async () => {
  for (const one of await validCases(nodeHmac)) {
    test(`${one.name}: body, signature and timestamp`, async () => {
      const all = [...flips(one)];
      assert.ok(all.length > one.request.body.length * 8);
      assert.deepEqual(await acceptedOf(one, all, nodeHmac), []);
    });
  }
});

test('a hash that leaves out the last byte lets its eight flips through', async () => {
  const careless: HmacPort = {
    ...nodeHmac,
    hmac: (hash, key, message) => nodeHmac.hmac(hash, key, message.subarray(0, -1)),
  };
  const [one] = await validCases(careless);
  assert.ok(one);
  assert.equal((await acceptedOf(one, [...flips(one)], careless)).length, 8);
});

async function acceptedOf(
  { provider, secrets, nowSec, scheme }: Case,
  all: readonly Flipped[],
  port: HmacPort,
): Promise<string[]> {
  const accepted: string[] = [];
  for (const { where, request } of all) {
    const context = { port, nowSec, ...(scheme && { scheme }) };
    const verification = await providerNamed(provider)?.verify(request, secrets, context);
    if (verification?.ok !== false) accepted.push(where);
  }
  return accepted;
}

function* flips({ provider, request }: Case): Generator<Flipped> {
  for (const [where, body] of flipsOf(request.body))
    yield { where: `body ${where}`, request: { ...request, body } };
  for (const name of [SIGNATURE_HEADERS[provider], TIMESTAMP_HEADERS[provider]]) {
    if (name === undefined) continue;
    for (const [where, bytes] of flipsOf(Buffer.from(String(request.headers[name]), 'latin1'))) {
      const headers = { ...request.headers, [name]: Buffer.from(bytes).toString('latin1') };
      yield { where: `${name} ${where}`, request: { ...request, headers } };
    }
  }
}

function* flipsOf(bytes: Uint8Array): Generator<[where: string, flipped: Uint8Array]> {
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = Uint8Array.from(bytes);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    yield [`bit ${bit}`, flipped];
  }
}
