// The stand-in in a process of its own: signed deliveries that the package `stripe` verifies, and books that survive its death.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import Stripe from 'stripe';
import { type StandInProcess, startStandInProcess } from './stand_in_process.ts';

const SECRET = 'whsec_0123456789abcdef0123456789';

/** Takes deliveries as an endpoint does: verifies them, and answers what it is told to. */
class Receiver {
  readonly events: Stripe.Event[] = [];
  readonly answers: number[] = [];
  readonly #server: Server;
  #arrived: () => void = () => undefined;

  constructor() {
    this.#server = createServer((request, response) => {
      void this.#take(request).then((status) => response.writeHead(status).end());
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/webhooks/stripe`;
  }

  async until(isDone: () => boolean): Promise<void> {
    while (!isDone()) await new Promise<void>((resolve) => (this.#arrived = resolve));
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #take(request: IncomingMessage): Promise<number> {
    const parts: Buffer[] = [];
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
    const signature = String(request.headers['stripe-signature']);
    this.events.push(Stripe.webhooks.constructEvent(Buffer.concat(parts), signature, SECRET));
    this.#arrived();
    return this.answers.shift() ?? 200;
  }
}

describe('the stand-in for Stripe as a process', () => {
  let receiver: Receiver;
  let url: string;
  let folder: string;
  let standIn: StandInProcess | undefined;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-stand-in-'));
    receiver = new Receiver();
    url = await receiver.listen();
  });
  after(() => {
    receiver.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    await standIn?.stop();
    receiver.events.length = 0;
  });
  const start = (journal: string, port = 0) =>
    startStandInProcess({ port, journal: join(folder, journal), webhook: { url, secret: SECRET } });
  const typesOf = () => receiver.events.map(({ type }) => type).sort();
  const pay = async ({ stripe, control }: StandInProcess) => {
    const session = await stripe.checkout.sessions.create({
      mode: 'payment',
      line_items: [
        { quantity: 1, price_data: { currency: 'eur', unit_amount: 500, product_data: { name: 'x' } } },
      ],
      success_url: 'http://127.0.0.1:1/',
    });
    return control.pay(session.id);
  };
  const PAID = ['charge.succeeded', 'checkout.session.completed', 'payment_intent.succeeded'];

  it('delivers events with signatures that the package takes, again after a refusal', async () => {
    standIn = await start('delivers');
    receiver.answers.push(503, 500);
    await pay(standIn);
    await receiver.until(() => receiver.events.length === PAID.length + 2);
    assert.deepEqual([...new Set(typesOf())], PAID);
  });

  it('keeps deliveries back while they are held, and never delivers what is dropped', async () => {
    standIn = await start('held');
    const { control, stripe } = standIn;
    await control.set({ webhooks: 'dropped' });
    await pay(standIn);
    await control.set({ webhooks: 'held' });
    const { payment_intent: held } = await pay(standIn);
    assert.equal(receiver.events.length, 0);
    await control.set({ webhooks: 'on' });
    await receiver.until(() => receiver.events.length === PAID.length);
    const objects = receiver.events.map(({ data }) => data.object as { id: string; payment_intent?: string });
    assert.ok(objects.every(({ id, payment_intent }) => id === held || payment_intent === held));
    assert.equal((await stripe.events.list({ limit: 100 })).data.length, 2 * PAID.length);
  });

  it('shows of its books what is asked for', async () => {
    standIn = await start('books');
    const { control } = standIn;
    await control.set({ webhooks: 'dropped' });
    const [first, second] = [await pay(standIn), await pay(standIn)];
    const count = async (state: string) => (await control.books('delivery', { state })).length;
    assert.deepEqual([await count('dropped'), await count('waiting')], [2 * PAID.length, 0]);
    const found = await control.books<{ id: string }>('session', { id: second.id });
    assert.deepEqual(
      found.map(({ id }) => id),
      [second.id],
    );
    assert.deepEqual(await control.books('session', { id: 'cs_none' }), []);
    assert.equal((await control.books('session')).length, [first, second].length);
  });

  it('knows its sessions and keys after it was killed, and delivers what it had not', async () => {
    standIn = await start('killed');
    await standIn.control.set({ webhooks: 'held' });
    const paid = await pay(standIn);
    const params = { payment_intent: String(paid.payment_intent) };
    const refund = await standIn.stripe.refunds.create(params, { idempotencyKey: 'refund:1' });
    await standIn.kill();
    standIn = await start('killed', standIn.port);
    const { stripe } = standIn;
    assert.equal((await stripe.checkout.sessions.retrieve(paid.id)).payment_status, 'paid');
    assert.equal((await stripe.refunds.create(params, { idempotencyKey: 'refund:1' })).id, refund.id);
    await receiver.until(() => receiver.events.length === PAID.length + 2);
    assert.deepEqual(typesOf(), ['charge.refunded', ...PAID, 'refund.created'].sort());
  });
});
