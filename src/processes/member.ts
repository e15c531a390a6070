// A process that a supervisor started: what it is told, what it asks, and what it shares with the others.

import { AggregatorRegistry } from 'prom-client';
import type { OwnPage, Page, Snapshot } from '../metrics.ts';
import type { Buckets, StreamCounts } from '../server/address_limits.ts';
import type { Network } from '../server/addresses.ts';
import {
  type FromMember,
  type Question,
  RATE_LIMITS,
  type RateLimitName,
  type ToMember,
  type Topic,
} from './messages.ts';
import type { Part } from './part.ts';

export interface StopOrder {
  readonly isRestart: boolean;
}

/** How often a member that has just started looks whether its databases answer. */
const READY_LOOK_MS = 250;
/** A supervisor that signals the whole group reaches members twice: the first word counts, the rest is passed over. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export class Member {
  readonly part: Part;
  /** Resolves when this process is to stop. */
  readonly stopped: Promise<StopOrder>;
  readonly #answers = new Map<number, (answer: unknown) => void>();
  readonly #listeners = new Map<Topic, (news: never) => void>();
  #nextId = 0;
  #pages: readonly OwnPage[] = [];
  #takes: number[] = [];
  #takers: ((waitMs: number) => void)[] = [];
  #isStopping = false;

  constructor(part: Part) {
    this.part = part;
    this.stopped = new Promise((resolve) => {
      const stop = (order: StopOrder): void => {
        this.#isStopping = true;
        resolve(order);
      };
      for (const signal of STOP_SIGNALS) process.on(signal, () => stop({ isRestart: false }));
      // It is the supervisor's: a terminal that hangs up tells all of its processes.
      process.on('SIGHUP', () => undefined);
      process.on('message', (message: ToMember) => {
        if (message.kind === 'stop') stop(message);
        else this.#hear(message);
      });
    });
    this.#send({ kind: 'hears' });
  }

  /** Of this process alone; the supervisor asks for them when a member shows the numbers of all. */
  counts(pages: readonly OwnPage[]): void {
    this.#pages = pages;
  }

  /** The numbers of all processes of the command as one page. */
  page(): Page {
    return {
      page: async () => {
        const own = await this.#snapshot();
        const others = await this.#ask<Snapshot[]>({ collect: own });
        return AggregatorRegistry.aggregate([own, ...others]).metrics();
      },
    };
  }

  /** It takes requests, or works. Then it tells when `ready` first resolves: when its databases answer. */
  async tellListening(
    { url, port }: { readonly url?: string; readonly port?: number },
    ready: () => Promise<unknown> = async () => undefined,
  ): Promise<void> {
    this.#send({ kind: 'listening', ...(url && { url }), ...(port && { port }) });
    while (!this.#isStopping) {
      try {
        await ready();
        this.#send({ kind: 'ready' });
        return;
      } catch {
        // What is away is told where it hurts.
        await new Promise((resolve) => setTimeout(resolve, READY_LOOK_MS));
      }
    }
  }

  /** Tells all other members. */
  tell(topic: Topic, news: unknown): void {
    this.#send({ kind: 'news', topic, news });
  }

  onNews<News>(topic: Topic, listener: (news: News) => void): void {
    this.#listeners.set(topic, listener as (news: never) => void);
  }

  /** The tokens of all addresses, which the supervisor has. */
  buckets(limit: RateLimitName): Buckets {
    const at = RATE_LIMITS.indexOf(limit);
    return {
      bytes: 0,
      take: (network, tokens = 1) => this.#take(at, network, tokens),
      wait: (network) => this.#take(at, network, 0),
    };
  }

  /** The open streams of all addresses, which the supervisor counts. */
  readonly streams: StreamCounts = {
    enter: (address) => this.#ask<boolean>({ enter: address }),
    leave: (address) => this.#send({ kind: 'left', address }),
  };

  /** The last words: the supervisor keeps what this process counted. */
  async leave(): Promise<void> {
    const own = await this.#snapshot();
    await new Promise<void>((resolve) => {
      if (process.connected) process.send?.({ kind: 'snapshot', own }, undefined, {}, () => resolve());
      else resolve();
    });
  }

  /** All that are asked for at once go in one message: in a burst it carries dozens. */
  #take(limit: number, { high, low }: Network, tokens: number): Promise<number> {
    return new Promise((resolve) => {
      if (this.#takers.length === 0) setImmediate(() => void this.#askForTakes());
      this.#takes.push(limit, high, low, tokens);
      this.#takers.push(resolve);
    });
  }

  async #askForTakes(): Promise<void> {
    const [take, takers] = [this.#takes, this.#takers];
    [this.#takes, this.#takers] = [[], []];
    const waits = await this.#ask<number[]>({ take });
    for (const [at, resolve] of takers.entries()) resolve(waits[at] ?? 0);
  }

  /** Never settles where the supervisor is gone: this process ends then. */
  #ask<Answer>(question: Question): Promise<Answer> {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#answers.set(id, resolve as (answer: unknown) => void);
      this.#send({ kind: 'ask', id, question });
    });
  }

  #hear(message: Exclude<ToMember, { kind: 'stop' }>): void {
    if (message.kind === 'answer') {
      this.#answers.get(message.id)?.(message.answer);
      this.#answers.delete(message.id);
    } else if (message.kind === 'news') {
      this.#listeners.get(message.topic)?.(message.news as never);
    } else if (message.kind === 'count') {
      void this.#snapshot().then((own) => this.#send({ kind: 'snapshot', id: message.id, own }));
    }
  }

  async #snapshot(): Promise<Snapshot> {
    return (await Promise.all(this.#pages.map((page) => page.snapshot()))).flat();
  }

  #send(message: FromMember): void {
    if (process.connected) process.send?.(message);
  }
}
