// Buyers claim with a request_id and come again until they are answered, at either server and some through PostgREST;
// some ask twice, some give their claim back.

import type { ClaimCall, ReleaseCall } from '../history.ts';
import type { Random } from '../random.ts';
import { PICKY_POOL, REFUSED_USER } from '../target.ts';
import { type Answer, ask } from './ask.ts';
import { asksToComeAgain, Clients } from './traffic.ts';

/** How often each pool is asked for, of all claims. */
const SHARES: readonly (readonly [pool: string, share: number])[] = [
  ['rpc', 0.6],
  ['hook', 0.14],
  ['checked', 0.12],
  ['small', 0.12],
  [PICKY_POOL, 0.02],
];
const REFUSED_SHARE = 0.2;
const POSTGREST_SHARE = 0.15;
const ASKED_TWICE_SHARE = 0.1;
const RELEASED_SHARE = 0.3;
/** How often a buyer leaves after an attempt without an answer, and never learns what became of the claim. */
const IMPATIENT_SHARE = 0.05;
/** After so many attempts in vain a buyer of PostgREST tries a server: both doors know the same requests. */
const POSTGREST_ATTEMPTS = 4;
const USERS = 500;

/** What one attempt told; undefined where it told nothing, and is to be made again. */
type Told = Pick<ClaimCall, 'answer'> & { slot?: { claimId: string | null; slotId: string } };

interface Purchase {
  readonly call: ClaimCall;
  readonly secret: string | undefined;
  readonly random: Random;
  readonly viaPostgrest: boolean;
}

export class Buyers extends Clients {
  run(lanes: number, perSecond: number): Promise<void> {
    return this.runLanes('buyer', lanes, perSecond, (client, random, lane, turn) =>
      this.#buy(client, `r-${lane}-${turn}`, random),
    );
  }

  async #buy(client: string, requestId: string, random: Random): Promise<void> {
    const poolId = choosePool(random);
    const isRefused = poolId === 'checked' && random.chance(REFUSED_SHARE);
    const userId = `${isRefused ? REFUSED_USER : ''}user-${random.below(USERS)}`;
    const call: ClaimCall = {
      requestId,
      poolId,
      userId,
      startedAt: this.traffic.now(),
      endedAt: 0,
      attempts: 0,
      answer: 'unknown',
      told: [],
    };
    // PostgREST's function takes no secret, and a request with one is another request.
    const viaPostgrest = poolId === 'rpc' && random.chance(POSTGREST_SHARE);
    const secret = viaPostgrest ? undefined : `the-secret-of-${requestId}`;
    await this.#untilAnswered(client, { call, secret, random, viaPostgrest });
    if (call.answer !== 'unknown') this.traffic.acknowledged('claim');
    if (call.answer === 'claimed' && random.chance(ASKED_TWICE_SHARE))
      await this.#untilAnswered(client, { call, secret, random, viaPostgrest: false });
    const claimId = call.told.find((slot) => slot.claimId !== null)?.claimId;
    if (!claimId || !secret || call.answer !== 'claimed' || poolId === PICKY_POOL) return;
    if (random.chance(RELEASED_SHARE)) await this.#release(client, claimId, secret, random);
  }

  /** A second round of a request that was answered keeps its answer when it gets none. */
  async #untilAnswered(client: string, purchase: Purchase): Promise<void> {
    const { call } = purchase;
    await this.#askAgainAndAgain(purchase);
    call.endedAt = this.traffic.now();
    this.traffic.journal.write(client, 'claim', call);
  }

  async #askAgainAndAgain({ call, secret, random, viaPostgrest }: Purchase): Promise<void> {
    for (let attempt = 0; !this.traffic.hasGivenUp; attempt++) {
      call.attempts++;
      const isRest = viaPostgrest && attempt < POSTGREST_ATTEMPTS;
      const told = await (isRest ? this.#askPostgrest(call) : this.#askServer(call, secret, random));
      if (told !== undefined) {
        call.answer = told.answer;
        const { slot } = told;
        const isKnown = call.told.some((one) => one.slotId === slot?.slotId && one.claimId === slot.claimId);
        if (slot !== undefined && !isKnown) call.told.push(slot);
        return;
      }
      if (random.chance(IMPATIENT_SHARE)) return;
      await this.traffic.beforeRetry(random);
    }
  }

  async #askServer(
    { poolId, userId, requestId }: ClaimCall,
    secret: string | undefined,
    random: Random,
  ): Promise<Told | undefined> {
    const { ports, agent } = this.traffic;
    const body = JSON.stringify({ user_id: userId, request_id: requestId, secret });
    const path = `/v1/pools/${poolId}/claims`;
    const answer = await ask({ port: random.pick(ports), path, method: 'POST', body, agent });
    if (this.#isNone('claim', answer)) return undefined;
    if (answer.status === 200 || answer.status === 201)
      return { answer: 'claimed', slot: { claimId: answer.json.claim_id, slotId: answer.json.resource_id } };
    if (answer.status === 409)
      return { answer: answer.json.error.code === 'sold_out' ? 'sold_out' : 'refused' };
    throw new Error(`a claim was answered with ${answer.status} ${JSON.stringify(answer.json)}`);
  }

  async #askPostgrest({ poolId, userId, requestId }: ClaimCall): Promise<Told | undefined> {
    const { postgrestPort: port, agent } = this.traffic;
    if (port === undefined) return undefined;
    const body = JSON.stringify({ p_pool_id: poolId, p_user_id: userId, p_request_id: requestId });
    const answer = await ask({ port, path: '/rpc/claim_resource_and_queue', method: 'POST', body, agent });
    if (this.#isNone('postgrest', answer)) return undefined;
    if (answer.status === 200)
      return answer.json === null
        ? { answer: 'sold_out' }
        : { answer: 'claimed', slot: { claimId: null, slotId: answer.json } };
    // Ended meanwhile, or many want the same slots. Every other refusal would be a surprise here.
    if (answer.json?.code === 'SL012') return { answer: 'refused' };
    if (answer.json?.code === 'SL011') return undefined;
    // PostgREST 12 says 400 and nothing else when its connection broke in the middle; what became of the claim it cannot know.
    if (answer.json?.code === '') return undefined;
    throw new Error(`PostgREST answered a claim with ${answer.status} ${JSON.stringify(answer.json)}`);
  }

  async #release(client: string, claimId: string, secret: string, random: Random): Promise<void> {
    const { ports, agent, journal } = this.traffic;
    const call: ReleaseCall = { claimId, at: 0, answer: 'unknown' };
    while (call.answer === 'unknown' && !this.traffic.hasGivenUp) {
      const answer = await ask({
        port: random.pick(ports),
        path: `/v1/claims/${claimId}`,
        method: 'DELETE',
        headers: { 'x-claim-secret': secret },
        agent,
      });
      if (this.#isNone('release', answer)) await this.traffic.beforeRetry(random);
      else if (answer.status === 200)
        call.answer = answer.json.status === 'released' ? 'released' : 'refused';
      // A worker has it: it is released, or turns out to be a ticket.
      else if (answer.status === 202) call.answer = 'ending';
      // A claim that is not there was lost, which the judge will find: no reason to end the run here.
      else if (answer.status === 409 || answer.status === 404) call.answer = 'refused';
      else throw new Error(`a release was answered with ${answer.status} ${JSON.stringify(answer.json)}`);
    }
    call.at = this.traffic.now();
    journal.write(client, 'release', call);
  }

  /** Notes what was answered; true where the client has to come again. */
  #isNone(what: string, answer: Answer | undefined): answer is undefined {
    const code = answer?.json?.error?.code ?? answer?.json?.code ?? '';
    this.traffic.count(
      answer === undefined ? `${what}: no answer` : `${what}: ${answer.status} ${code}`.trim(),
    );
    return answer === undefined || asksToComeAgain(answer.status);
  }
}

function choosePool(random: Random): string {
  let left = random.next();
  for (const [pool, share] of SHARES) {
    left -= share;
    if (left < 0) return pool;
  }
  return 'rpc';
}
