// How the providers deliver: Stripe again and again with growing pauses, Twilio once more and then never.

import { setMaxListeners } from 'node:events';
import { Agent } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { send } from '../world.ts';

export interface Delivery {
  url: string;
  provider: 'stripe' | 'twilio';
  body: string;
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const IN_FLIGHT = 32;
const TRIES_MAX = 20;
const STRIPE_FIRST_PAUSE_SEC = 60;

export class Senders {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
  readonly #twilioPauseSec: number;
  readonly #underWay = new Set<Promise<void>>();
  readonly #twilio = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  /** What Stripe has not got rid of yet. */
  readonly open = new Map<string, Delivery>();
  /** What Twilio gave up. */
  readonly givenUp = new Set<string>();
  readonly refused = new Map<number, number>();

  constructor(twilioPauseSec: number) {
    this.#twilioPauseSec = twilioPauseSec;
    setMaxListeners(0, this.#stopping.signal);
  }

  /** Tried at once and then after 1, 2, 4 … minutes, for days. */
  stripe(id: string, delivery: Delivery, onTaken: () => void): void {
    this.open.set(id, delivery);
    this.#run(this.#underWay, async () => {
      for (let pauseSec = STRIPE_FIRST_PAUSE_SEC; !(await this.#isTaken(delivery)); pauseSec *= 2)
        await this.#pause(pauseSec);
      this.open.delete(id);
      onTaken();
    });
  }

  /** Tried at once and once more. */
  twilio(id: string, delivery: Delivery): void {
    this.#run(this.#twilio, async () => {
      if (await this.#isTaken(delivery)) return;
      await this.#pause(this.#twilioPauseSec);
      if (!(await this.#isTaken(delivery))) this.givenUp.add(id);
    });
  }

  /** Resolves when Twilio has delivered or given up all it had. */
  async settleTwilio(): Promise<void> {
    while (this.#twilio.size > 0) await Promise.all(this.#twilio);
  }

  /** Stripe's next try of all that is open, now; the answers by their status. */
  async flush(): Promise<Record<string, number>> {
    this.#stopping.abort();
    await Promise.all(this.#underWay);
    const answers: Record<string, number> = {};
    for (const delivery of this.open.values()) {
      let answer = await this.#post(delivery);
      for (let tries = 1; answer.status >= 500 && tries < TRIES_MAX; tries++)
        answer = await this.#post(delivery);
      const { status, json } = answer;
      const name = `${status} ${json?.status}`;
      answers[name] = (answers[name] ?? 0) + 1;
    }
    this.#agent.destroy();
    return answers;
  }

  #run(underWay: Set<Promise<void>>, work: () => Promise<void>): void {
    const running = work()
      .catch((error: unknown) => {
        if (!this.#stopping.signal.aborted) throw error;
      })
      .finally(() => underWay.delete(running));
    underWay.add(running);
  }

  async #pause(sec: number): Promise<void> {
    await setTimeout(sec * 1_000, undefined, { signal: this.#stopping.signal });
  }

  async #isTaken(delivery: Delivery): Promise<boolean> {
    const { status } = await this.#post(delivery);
    if (status !== 200) this.refused.set(status, (this.refused.get(status) ?? 0) + 1);
    return status === 200;
  }

  #post({ url, provider, body }: Delivery) {
    return send({ url, provider, body, agent: this.#agent, ...(provider === 'twilio' && { headers: FORM }) });
  }
}
