// Buyers, a provider and a caller that go on whatever breaks: each asks again until it is answered, and some ask once more
// after that. What they are told is kept.

import { createHash } from 'node:crypto';
import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { callBody, signedRequest } from '../../test/calls/support.ts';
import { paymentEvent, SECRETS } from '../../test/webhook/world.ts';
import { type Asking, ask } from '../clients/ask.ts';
import { createRandom, type Random } from '../random.ts';
import { type Kind, Tally, type Told } from './tally.ts';

export const CLAIM_POOL = 'cells';
export const EVENT_ENDPOINT = 'cells';
const RETRY_MS = 100;
/** Between two requests of one client: all must drain in the end, and the pool must not be sold out before that. */
const REST_MS: Readonly<Record<Kind, number>> = { claim: 100, event: 400, call: 100 };
/** How often an answered request is sent once more: the answer must be the same. */
const AGAIN_SHARE = 0.3;

export interface LoadOptions {
  /** The port of the server, asked at each request. */
  readonly port: () => number;
  /** How many clients of each kind. */
  readonly clients: Readonly<Partial<Record<Kind, number>>>;
  /** Makes the keys of one run differ from those of another. */
  readonly run: string;
  readonly seed?: number;
}

interface Request {
  readonly key: string;
  send(): Promise<Omit<Asking, 'port' | 'agent'>>;
}

/** Runs until stopped. */
export class Load {
  readonly tally = new Tally();
  readonly #options: LoadOptions;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #running: Promise<unknown>;
  #isStopped = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    const { clients, seed = 1 } = options;
    const lanes = Object.entries(clients).flatMap(([kind, count]) =>
      Array.from({ length: count }, (_, index) =>
        this.#client(kind as Kind, `${kind}${index}`, createRandom(seed, `${kind} ${index}`)),
      ),
    );
    this.#running = Promise.all(lanes);
  }

  async stop(): Promise<readonly Told[]> {
    this.#isStopped = true;
    await this.#running;
    this.#agent.destroy();
    return this.tally.told;
  }

  async #client(kind: Kind, name: string, random: Random): Promise<void> {
    for (let turn = 1; !this.#isStopped; turn++) {
      const request = REQUESTS[kind](name, `${this.#options.run}_${name}_${turn}`);
      await this.#untilAnswered(kind, request);
      if (random.chance(AGAIN_SHARE)) await this.#untilAnswered(kind, request);
      await pause(REST_MS[kind]);
    }
  }

  async #untilAnswered(kind: Kind, { key, send }: Request): Promise<void> {
    while (!this.#isStopped) {
      const asking = await send();
      const answer = await ask({ ...asking, port: this.#options.port(), agent: this.#agent });
      const isTold = answer !== undefined && answer.status >= 200 && answer.status < 300;
      this.tally.note(
        kind,
        answer?.status ?? 0,
        isTold ? { key, claimId: answer.json?.claim_id ?? '' } : undefined,
      );
      if (isTold) return;
      await pause(RETRY_MS);
    }
  }
}

const REQUESTS: Readonly<Record<Kind, (client: string, name: string) => Request>> = {
  claim: (client, key) => ({
    key,
    send: async () => ({
      path: `/v1/pools/${CLAIM_POOL}/claims`,
      method: 'POST',
      body: JSON.stringify({ user_id: client, request_id: key }),
    }),
  }),
  event: (_client, name) => ({
    key: `evt_${name}`,
    async send() {
      const body = paymentEvent(`evt_${name}`);
      const path = `/webhooks/${EVENT_ENDPOINT}`;
      const signed = await providerNamed('stripe')?.sign(
        { method: 'POST', url: path, body: new TextEncoder().encode(body) },
        SECRETS.STRIPE_WEBHOOK_SECRET ?? '',
        { port: nodeHmac, nowSec: Math.floor(Date.now() / 1_000) },
      );
      return { path, method: 'POST', body, headers: { ...signed } };
    },
  }),
  call(_client, name) {
    const { headers, body } = signedRequest(callBody({ payload: { name } }));
    const key = createHash('sha256')
      .update(headers['x-ops-signature'] ?? '')
      .digest('hex');
    return { key, send: async () => ({ path: '/call-events', method: 'POST', headers, body }) };
  },
};
