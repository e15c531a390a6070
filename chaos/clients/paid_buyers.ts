// Buyers of pools with payment: they hold seats, go to Stripe's page, pay there in time, late, by a slow method or never, give
// seats back, and ask for their money; now and then an operator takes a ticket back.

import { setTimeout as pause } from 'node:timers/promises';
import { withClient } from '../../src/migrate/sql.ts';
import type { StoredSession } from '../../src/stripe_stand_in/books.ts';
import type { StandInClient } from '../../src/stripe_stand_in/client.ts';
import type { ClaimCall, ReleaseCall } from '../history.ts';
import type { OrderCall, VoidCall } from '../paid_history.ts';
import type { Random } from '../random.ts';
import { type Answer, ask } from './ask.ts';
import { asksToComeAgain, Clients, type Traffic } from './traffic.ts';

/** `paid` has seats for all; `rare` sells out, so that who pays late finds none. */
export const PAID_POOLS = { plenty: 'paid', rare: 'paid-rare' } as const;
export const PAID_RULES = {
  unitPrice: 1_000,
  currency: 'eur',
  holdSec: 10,
  graceSec: 5,
  maxQuantity: 3,
} as const;
const RARE_SHARE = 0.3;
const GROUP_SHARE = 0.3;
/** What becomes of an order that got its seats, of all of them. */
const FATES = [
  ['pays', 0.5],
  ['pays late', 0.12],
  ['pays by a slow method', 0.1],
  ['never pays', 0.13],
  ['never asks to pay', 0.07],
  ['gives back', 0.08],
] as const;
type Fate = (typeof FATES)[number][0];
/** What happens to an order that was paid, of all of them. */
const AFTERWARDS = [
  ['refund', 0.12],
  ['part of it refunded', 0.04],
  ['dispute', 0.04],
  ['void', 0.06],
  ['paid again by hand', 0.05],
] as const;
const THINKS_MS: readonly [number, number] = [100, 3_000];
/** So late that the hold is over: before, at and after the end of the grace. */
const LATE_MS: readonly [number, number] = [
  PAID_RULES.holdSec * 1_000,
  (PAID_RULES.holdSec + 2 * PAID_RULES.graceSec) * 1_000,
];
const BANK_MS: readonly [number, number] = [500, 10_000];
const PART = 300;
const USERS = 300;
const OK = 200;

type Buying = { client: string; call: OrderCall; secret: string; seats: number; random: Random };

export type PaidOptions = {
  stripe: StandInClient;
  stripeUrl: string;
  stripeKey: string;
  db2Url: () => string;
};

export class PaidBuyers extends Clients {
  readonly #options: PaidOptions;

  constructor(traffic: Traffic, seed: number, options: PaidOptions) {
    super(traffic, seed);
    this.#options = options;
  }

  run(lanes: number, perSecond: number): Promise<void> {
    const left = new Set<Promise<void>>();
    const orders = this.runLanes('paid', lanes, perSecond, async (client, random, lane, turn) => {
      const buying = await this.#hold(client, `p-${lane}-${turn}`, random);
      if (buying === undefined) return;
      // A buyer who waits for its bank keeps no lane busy.
      const end = this.#goOn(buying).finally(() => left.delete(end));
      left.add(end);
      // Told when all lanes have ended; until then it must not end the process.
      end.catch(() => undefined);
    });
    return orders.then(async () => void (await Promise.all(left)));
  }

  async #hold(client: string, requestId: string, random: Random): Promise<Buying | undefined> {
    const poolId = random.chance(RARE_SHARE) ? PAID_POOLS.rare : PAID_POOLS.plenty;
    const quantity = random.chance(GROUP_SHARE) ? 2 + random.below(PAID_RULES.maxQuantity - 1) : 1;
    const userId = `buyer-${random.below(USERS)}`;
    const secret = `the-secret-of-${requestId}`;
    const claim: ClaimCall = {
      ...{ requestId, poolId, userId, quantity, startedAt: this.traffic.now(), endedAt: 0, attempts: 0 },
      ...{ answer: 'unknown', told: [] },
    };
    const body = JSON.stringify({ user_id: userId, request_id: requestId, secret, quantity });
    let claimIds: string[] = [];
    while (!this.traffic.hasGivenUp) {
      claim.attempts++;
      const answer = await this.#ask('hold', random, `/v1/pools/${poolId}/claims`, 'POST', secret, body);
      if (answer === undefined) {
        await this.traffic.beforeRetry(random);
        continue;
      }
      if (answer.status === OK || answer.status === 201) {
        claim.answer = 'claimed';
        claim.told = [{ claimId: answer.json.claim_id, slotId: answer.json.resource_id }];
        const { claims } = answer.json as { claims?: { claim_id: string }[] };
        claimIds = (claims ?? [answer.json]).map(({ claim_id }) => claim_id);
      } else if (answer.status === 409)
        claim.answer = answer.json.error.code === 'sold_out' ? 'sold_out' : 'refused';
      else throw new Error(`a hold was answered with ${answer.status} ${JSON.stringify(answer.json)}`);
      break;
    }
    claim.endedAt = this.traffic.now();
    this.traffic.journal.write(client, 'claim', claim);
    if (claim.answer !== 'unknown') this.traffic.acknowledged('claim');
    const [orderId] = claimIds;
    if (orderId === undefined) return undefined;
    const call: OrderCall = {
      ...{
        orderId,
        poolId,
        userId,
        claimIds,
        sessionId: null,
        paidAt: null,
        paidWith: null,
        isTurnedAway: false,
      },
    };
    this.traffic.journal.write(client, 'order', call);
    return { client, call, secret, seats: claimIds.length, random };
  }

  async #goOn(buying: Buying): Promise<void> {
    const { random } = buying;
    const fate = choose(random, FATES) ?? 'never pays';
    if (fate === 'never asks to pay') return;
    if (fate === 'gives back' && random.chance(0.5)) return this.#giveBack(buying);
    await this.#checkout(buying);
    if (buying.call.sessionId === null) return;
    await pause(random.between(...(fate === 'pays late' ? LATE_MS : THINKS_MS)));
    if (fate === 'gives back') return this.#giveBack(buying);
    if (fate === 'never pays') return;
    await this.#pay(buying, fate);
    if (buying.call.paidAt !== null && !buying.call.isTurnedAway) await this.#afterwards(buying);
  }

  /** Asks until it has the page's address, or is told that it is too late. Some ask at both servers at once. */
  async #checkout({ client, call, secret, random }: Buying): Promise<void> {
    const path = `/v1/claims/${call.orderId}/checkout`;
    while (!this.traffic.hasGivenUp) {
      const twice = random.chance(0.1);
      const answers = await Promise.all(
        Array.from({ length: twice ? 2 : 1 }, () =>
          this.#ask('checkout', random, path, 'POST', secret, '{}'),
        ),
      );
      const urls = new Set(
        answers.flatMap((one) => (one !== undefined && one.status < 300 ? [String(one.json.url)] : [])),
      );
      if (urls.size > 1) throw new Error(`two live sessions for ${call.orderId}: ${[...urls].join(' ')}`);
      const [url] = urls;
      if (url !== undefined) {
        call.sessionId = /cs_\w+/.exec(url)?.[0] ?? null;
        this.traffic.acknowledged('checkout');
        this.traffic.journal.write(client, 'order', call);
        return;
      }
      const refused = answers.find((one) => one !== undefined);
      // Over, or already paid; a claim that is not there was lost, which the judge will find.
      if (refused?.status === 409 || refused?.status === 404) return;
      if (refused !== undefined)
        throw new Error(`a checkout was answered with ${refused.status} ${JSON.stringify(refused.json)}`);
      await this.traffic.beforeRetry(random);
    }
  }

  async #pay({ client, call, random }: Buying, fate: Fate): Promise<void> {
    const { stripe } = this.#options;
    call.paidWith = fate === 'pays by a slow method' ? 'delayed' : 'card';
    call.paidAt = this.traffic.now();
    // Before Stripe hears of it: what it does then may be seen before its answer is.
    this.traffic.journal.write(client, 'order', call);
    const session = call.sessionId ?? '';
    try {
      await stripe.pay(session, call.paidWith);
    } catch (error) {
      if (!String(error).includes('status of')) throw error;
      call.isTurnedAway = true;
      this.traffic.journal.write(client, 'order', call);
      return;
    }
    if (call.paidWith === 'card') return;
    await pause(random.between(...BANK_MS));
    await stripe.endDelayed(session, random.chance(0.7));
  }

  async #afterwards({ client, call, random, seats }: Buying): Promise<void> {
    const what = choose(random, AFTERWARDS);
    if (what === undefined) return;
    await pause(random.between(...THINKS_MS));
    const [stored] = await this.#options.stripe.books<StoredSession>('session', { id: call.sessionId ?? '' });
    const intent = stored?.session.payment_intent;
    if (typeof intent !== 'string') return;
    const whole = seats * PAID_RULES.unitPrice;
    if (what === 'dispute') await this.#options.stripe.loseDispute(intent).catch(refused);
    else if (what === 'void') await this.#void(client, call, random);
    else if (what === 'paid again by hand')
      await this.#stripe('payment_intents', {
        ...{
          amount: String(random.chance(0.5) ? whole : whole - 1),
          currency: PAID_RULES.currency,
          confirm: 'true',
        },
        ...{
          'metadata[claim_id]': call.orderId,
          'metadata[user_id]': call.userId,
          'metadata[verified]': 'false',
        },
      });
    else
      await this.#stripe('refunds', {
        payment_intent: intent,
        amount: String(what === 'refund' ? whole : PART),
      });
  }

  /** As Stripe's dashboard does it. What Stripe says no to (it is refunded, or charged back) is done. */
  async #stripe(path: string, form: Record<string, string>): Promise<void> {
    const { stripeUrl, stripeKey } = this.#options;
    await fetch(`${stripeUrl}/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${stripeKey}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(form),
    }).catch(() => undefined);
  }

  /** One ticket of the order, or all. Noted before, because it may happen without an answer. */
  async #void(client: string, { claimIds, orderId }: OrderCall, random: Random): Promise<void> {
    const call: VoidCall = {
      claimIds: random.chance(0.5) ? claimIds : claimIds.slice(0, 1),
      isRefund: random.chance(0.8),
      reason: `chaos ${orderId}`,
      at: this.traffic.now(),
      answer: 'unknown',
    };
    this.traffic.journal.write(client, 'void', call);
    const values = [call.claimIds, call.isRefund, 'chaos', call.reason];
    try {
      await withClient(this.#options.db2Url(), (db2) =>
        db2.query('select public.request_void($1, $2, $3, $4)', values),
      );
    } catch {
      return;
    }
    this.traffic.journal.write(client, 'void', { ...call, answer: 'done' });
  }

  async #giveBack({ client, call: { orderId }, secret, random }: Buying): Promise<void> {
    const call: ReleaseCall = { claimId: orderId, at: 0, answer: 'unknown' };
    while (call.answer === 'unknown' && !this.traffic.hasGivenUp) {
      const answer = await this.#ask('give back', random, `/v1/claims/${orderId}`, 'DELETE', secret);
      if (answer === undefined) await this.traffic.beforeRetry(random);
      else if (answer.status === OK) call.answer = answer.json.status === 'released' ? 'released' : 'refused';
      else if (answer.status === 202) call.answer = 'ending';
      else call.answer = 'refused';
    }
    call.at = this.traffic.now();
    this.traffic.journal.write(client, 'release', call);
  }

  /** Undefined where it has to be asked again. */
  async #ask(
    what: string,
    random: Random,
    path: string,
    method: string,
    secret: string,
    body?: string,
  ): Promise<Answer | undefined> {
    const { ports, agent } = this.traffic;
    const headers = { 'x-claim-secret': secret };
    const port = random.pick(ports);
    const answer = await ask({ port, path, method, headers, agent, ...(body !== undefined && { body }) });
    const code = answer?.json?.error?.code ?? '';
    this.traffic.count(
      answer === undefined ? `${what}: no answer` : `${what}: ${answer.status} ${code}`.trim(),
    );
    return answer === undefined || asksToComeAgain(answer.status) ? undefined : answer;
  }
}

/** Stripe says no: the money has gone already. */
const refused = (): void => undefined;

/** One of them by its share, or none where the shares leave room. */
function choose<Name extends string>(
  random: Random,
  shares: readonly (readonly [Name, number])[],
): Name | undefined {
  let left = random.next();
  for (const [name, share] of shares) {
    left -= share;
    if (left < 0) return name;
  }
  return undefined;
}
