import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import Stripe from 'stripe';
import { Payments } from '../../src/demo/payments.ts';
import { newTally } from '../../src/demo/tally.ts';
import { claimOf } from './support.ts';

const SECRET = 'whsec_test';

/** Pays for so many claims at a door that answers as told; returns the deliveries as they arrived. */
async function payAt(count: number, answer: (delivery: number) => number) {
  const deliveries: { body: string; signature: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      deliveries.push({ body, signature: String(request.headers['stripe-signature']) });
      response.writeHead(answer(deliveries.length)).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const tally = newTally();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { signal } = new AbortController();
  const payments = new Payments({ url, secret: SECRET, account: 'till', signal, tally });
  try {
    for (let number = 1; number <= count; number++) payments.pay(claimOf(number));
    await payments.done();
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  return { deliveries, tally };
}

describe('the payments of the demo', () => {
  it('are signed so that the provider’s own library takes them', async () => {
    const { deliveries } = await payAt(1, () => 200);
    const [{ body, signature } = { body: '', signature: '' }] = deliveries;
    const { webhooks } = new Stripe('sk_test');
    const event = webhooks.constructEvent(body, signature, SECRET);
    assert.equal(event.type, 'payment_intent.succeeded');
    assert.throws(() => webhooks.constructEvent(body.replace('4200', '4201'), signature, SECRET));
  });

  it('are delivered until they are taken, and every fifth once more, with the same bytes', async () => {
    const { deliveries, tally } = await payAt(10, (delivery) => (delivery <= 3 ? 503 : 200));
    assert.deepEqual([tally.paid, tally.deliveries, tally.triedAgain, tally.problems], [10, 12, 3, []]);
    assert.equal(deliveries.length, 15);
    assert.equal(new Set(deliveries.map(({ body }) => body)).size, 10);
  });

  it('are left out where the server has no door for them', async () => {
    const { tally } = await payAt(50, () => 404);
    assert.deepEqual([tally.paid, tally.problems], [0, []]);
    assert.match(String(tally.noPayments), /no door/);
  });

  it('are a problem where the server refuses them', async () => {
    const { tally } = await payAt(2, () => 401);
    assert.deepEqual(tally.problems, Array(2).fill('a payment event was refused with 401'));
  });
});
