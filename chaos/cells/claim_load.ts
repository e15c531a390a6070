// Buyers who claim without a pause and ask again with the same request id until they are told: what a buyer is told is kept.

import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { ask } from '../clients/ask.ts';
import { Tally, type Told } from './tally.ts';

const RETRY_MS = 100;

export interface ClaimLoadOptions {
  /** The port of the server, asked at each request: it may have been started again. */
  readonly port: () => number;
  readonly pool: string;
  readonly buyers: number;
  /** Makes request ids of one run differ from those of another. */
  readonly run: string;
}

/** Runs until stopped. Each acknowledged claim is one of `tally.told`, by its request id. */
export class ClaimLoad {
  readonly tally = new Tally();
  readonly #options: ClaimLoadOptions;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #running: Promise<unknown>;
  #isStopped = false;

  constructor(options: ClaimLoadOptions) {
    this.#options = options;
    this.#running = Promise.all(Array.from({ length: options.buyers }, (_, index) => this.#buy(index)));
  }

  async stop(): Promise<readonly Told[]> {
    this.#isStopped = true;
    await this.#running;
    this.#agent.destroy();
    return this.tally.told;
  }

  async #buy(buyer: number): Promise<void> {
    const { port, pool, run } = this.#options;
    for (let turn = 1; !this.#isStopped; turn++) {
      const request = `${run}-${buyer}-${turn}`;
      const body = JSON.stringify({ user_id: `buyer-${buyer}`, request_id: request });
      while (!this.#isStopped) {
        const answer = await ask({
          ...{ port: port(), path: `/v1/pools/${pool}/claims`, method: 'POST', body, agent: this.#agent },
        });
        const isAcknowledged = answer?.status === 201 || answer?.status === 200;
        this.tally.note(
          'claim',
          answer?.status,
          isAcknowledged ? [request, answer.json.claim_id] : undefined,
        );
        if (isAcknowledged) break;
        await pause(RETRY_MS);
      }
    }
  }
}
