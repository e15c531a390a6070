// What all clients share: where the doors are, when to stop, what has been acknowledged, and the journal.

import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Journal } from '../journal.ts';
import { createRandom, type Random } from '../random.ts';

export type AckKind = 'claim' | 'event' | 'call' | 'commit' | 'operator' | 'checkout';

/** The sockets of all clients of one kind to one door. */
const MAX_SOCKETS = 128;
const RETRY_MS: readonly [number, number] = [50, 300];

export class Traffic {
  readonly journal: Journal;
  readonly agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  /** Connections of their own: what the healthy one waits for is never a socket that another client holds. */
  readonly healthyAgent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  readonly hostileAgent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  /** The ports of the servers, as clients reach them. */
  readonly ports: readonly number[];
  readonly postgrestPort: number | undefined;
  /** When each acknowledgement came, by kind, in their order. */
  readonly acks: Record<AckKind, number[]> = {
    ...{ claim: [], event: [], call: [], commit: [], operator: [], checkout: [] },
  };
  /** How often each kind of client was told what. */
  readonly answers: Record<string, number> = {};
  readonly #startedMs: number;
  #isOpen = true;
  #giveUpMs = Number.POSITIVE_INFINITY;

  constructor(options: {
    journal: Journal;
    ports: readonly number[];
    postgrestPort?: number | undefined;
    startedMs: number;
  }) {
    this.journal = options.journal;
    this.ports = options.ports;
    this.postgrestPort = options.postgrestPort;
    this.#startedMs = options.startedMs;
  }

  /** Milliseconds since the run began. */
  now(): number {
    return performance.now() - this.#startedMs;
  }

  /** False once nothing new is to be begun. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Nothing new is begun; what is pending goes on for this long. */
  close(patienceMs: number): void {
    this.#isOpen = false;
    this.#giveUpMs = this.now() + patienceMs;
  }

  get hasGivenUp(): boolean {
    return this.now() > this.#giveUpMs;
  }

  destroy(): void {
    for (const agent of [this.agent, this.healthyAgent, this.hostileAgent]) agent.destroy();
  }

  acknowledged(kind: AckKind): void {
    this.acks[kind].push(this.now());
  }

  count(what: string): void {
    this.answers[what] = (this.answers[what] ?? 0) + 1;
  }

  get total(): number {
    return (
      this.acks.claim.length + this.acks.event.length + this.acks.call.length + this.acks.operator.length
    );
  }

  /** Before the next attempt of something that had no answer, or one that asks to come again. */
  async beforeRetry(random: Random): Promise<void> {
    await pause(random.between(...RETRY_MS));
  }

  /** `perSecond` times a second in all, over so many lanes, until the traffic is closed. */
  async run(
    lanes: number,
    perSecond: number,
    work: (lane: number, turn: number) => Promise<void>,
  ): Promise<void> {
    const gapMs = (1_000 * lanes) / perSecond;
    const lane = async (index: number): Promise<void> => {
      await pause((gapMs * index) / lanes);
      for (let turn = 0; this.#isOpen; turn++) {
        const begunMs = this.now();
        await work(index, turn);
        const restMs = gapMs - (this.now() - begunMs);
        if (restMs > 0 && this.#isOpen) await pause(restMs);
      }
    };
    await Promise.all(Array.from({ length: lanes }, (_, index) => lane(index)));
  }
}

/** Clients of one kind. Each lane draws numbers of its own, so that a seed repeats what it asks. */
export class Clients {
  protected readonly traffic: Traffic;
  readonly #seed: number;

  constructor(traffic: Traffic, seed: number) {
    this.traffic = traffic;
    this.#seed = seed;
  }

  protected async runLanes(
    kind: string,
    lanes: number,
    perSecond: number,
    work: (client: string, random: Random, lane: number, turn: number) => Promise<void>,
  ): Promise<void> {
    const randoms = Array.from({ length: lanes }, (_, lane) => createRandom(this.#seed, `${kind} ${lane}`));
    await this.traffic.run(lanes, perSecond, (lane, turn) =>
      work(`${kind}-${lane}`, randoms[lane] as Random, lane, turn),
    );
  }
}

/** Statuses that ask to come again; every other one is an answer. */
export function asksToComeAgain(status: number): boolean {
  return status >= 500 || status === 429 || status === 408;
}
