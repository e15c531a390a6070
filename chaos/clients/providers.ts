// A payment provider: signed events about payments and refunds, delivered until they are taken, some twice, some out of
// order, some facts told by two events. A few tell nothing that can take effect.

import { createHmac } from 'node:crypto';
import type { EventCall } from '../history.ts';
import type { Random } from '../random.ts';
import { ask } from './ask.ts';
import { asksToComeAgain, Clients, type Traffic } from './traffic.ts';

/** By name, what `webhook.add_endpoint` is told. What `accepting` answers 2xx while DB2 is away has to be there in the end. */
export const PROVIDER_ENDPOINTS = {
  inline: { mode: 'inline', on_outage: 'refuse' },
  queued: { mode: 'queued', on_outage: 'refuse' },
  accepting: { mode: 'queued', on_outage: 'accept' },
} as const;

const NAMES = Object.keys(PROVIDER_ENDPOINTS) as (keyof typeof PROVIDER_ENDPOINTS)[];

const PROVIDER = 'stripe';
const CURRENCY = 'eur';
const USERS = 50;
const MAX_AMOUNT = 5_000;
const REFUNDED_SHARE = 0.3;
const TOLD_TWICE_SHARE = 0.2;
const AGAIN_SHARE = 0.15;
const OUT_OF_ORDER_SHARE = 0.5;
const POISON_SHARE = 0.01;
/** Of all events; what an event says of its time decides nothing here. */
const OCCURRED_AT_SEC = 1_770_000_000;

type Fact = EventCall['fact'];
type ProviderEvent = {
  id: string;
  type: string;
  fact: Fact;
  object: Record<string, unknown>;
  isPoison?: boolean;
};

export class Providers extends Clients {
  readonly #secret: string;

  constructor(traffic: Traffic, seed: number, secret: string) {
    super(traffic, seed);
    this.#secret = secret;
  }

  async run(lanes: number, perSecond: number): Promise<void> {
    // A turn is about one payment, which has 1.5 events on average.
    const turns = perSecond / (1 + REFUNDED_SHARE + TOLD_TWICE_SHARE);
    await this.runLanes('provider', lanes, turns, async (client, random, lane, turn) => {
      for (const event of eventsOf(`${lane}_${turn}`, random)) await this.#deliver(client, event, random);
    });
  }

  async #deliver(client: string, event: ProviderEvent, random: Random): Promise<void> {
    const { journal } = this.traffic;
    // An event that cannot take effect is never taken inline: the provider would come again for ever.
    const endpoint = event.isPoison ? 'queued' : random.pick(NAMES);
    const call: EventCall = {
      provider: PROVIDER,
      endpoint,
      eventId: event.id,
      fact: event.fact,
      deliveries: 0,
      acknowledgedAt: null,
    };
    const body = JSON.stringify({
      id: event.id,
      object: 'event',
      type: event.type,
      created: OCCURRED_AT_SEC,
      data: { object: event.object },
    });
    // Before anybody hears of it: it may be stored, and end as a dead letter, although no answer ever comes.
    journal.write(client, 'event', call);
    if (event.isPoison) journal.write(client, 'poison', { id: event.id });
    await this.#untilTaken(call, body, random);
    journal.write(client, 'event', call);
    if (!random.chance(AGAIN_SHARE)) return;
    await this.#untilTaken(call, body, random);
    journal.write(client, 'event', call);
  }

  async #untilTaken(call: EventCall, body: string, random: Random): Promise<void> {
    while (!this.traffic.hasGivenUp) {
      call.deliveries++;
      const status = await this.#post(call.endpoint, body, random);
      if (status !== undefined && status >= 200 && status < 300) {
        if (call.acknowledgedAt === null) this.traffic.acknowledged('event');
        call.acknowledgedAt ??= this.traffic.now();
        return;
      }
      if (status !== undefined && !asksToComeAgain(status))
        throw new Error(`an event was answered with ${status}`);
      await this.traffic.beforeRetry(random);
    }
  }

  async #post(endpoint: string, body: string, random: Random): Promise<number | undefined> {
    const { ports, agent } = this.traffic;
    const nowSec = Math.floor(Date.now() / 1_000);
    const mac = createHmac('sha256', this.#secret).update(`${nowSec}.${body}`).digest('hex');
    const headers = { 'stripe-signature': `t=${nowSec},v1=${mac}` };
    const path = `/webhooks/${endpoint}`;
    const answer = await ask({ port: random.pick(ports), path, method: 'POST', headers, body, agent });
    const isAccepted = answer?.json?.status === 'accepted';
    const code = isAccepted ? 'accepted' : (answer?.json?.error?.code ?? '');
    this.traffic.count(answer === undefined ? 'event: no answer' : `event: ${answer.status} ${code}`.trim());
    return answer?.status;
  }
}

/** All events about one payment, in the order in which they are delivered. */
function eventsOf(name: string, random: Random): ProviderEvent[] {
  const amount = random.between(1, MAX_AMOUNT);
  const userId = `payer-${random.below(USERS)}`;
  const intent = `pi_${name}`;
  const isPoison = random.chance(POISON_SHARE);
  const object = { amount, currency: isPoison ? 'none' : CURRENCY, metadata: { user_id: userId } };
  const paid: Fact = { object: intent, kind: 'paid', userId, amount, currency: CURRENCY };
  const charge = {
    id: `ch_${name}`,
    object: 'charge',
    payment_intent: intent,
    amount_captured: amount,
    ...object,
  };
  const events: ProviderEvent[] = [
    {
      id: `evt_${name}_paid`,
      type: 'payment_intent.succeeded',
      fact: paid,
      object: { id: intent, object: 'payment_intent', amount_received: amount, ...object },
      isPoison,
    },
  ];
  if (isPoison) return events;
  if (random.chance(TOLD_TWICE_SHARE))
    events.push({ id: `evt_${name}_charge`, type: 'charge.succeeded', fact: paid, object: charge });
  if (random.chance(REFUNDED_SHARE)) {
    const refunded = random.between(1, amount);
    events.push({
      id: `evt_${name}_refund`,
      type: 'charge.refunded',
      fact: { ...paid, kind: 'refunded', amount: refunded },
      object: { ...charge, amount_refunded: refunded },
    });
  }
  return random.chance(OUT_OF_ORDER_SHARE) ? events.reverse() : events;
}
