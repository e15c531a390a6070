// What the supervisor answers its members: whether an address may, and what all of them counted. Tokens and streams of an address are
// here because a share of them would be wrong: a client's connections do not reach all processes alike.

import { AggregatorRegistry } from 'prom-client';
import type { Snapshot } from '../metrics.ts';
import { type LimitSettings, OwnCounts } from '../server/address_limits.ts';
import type { TokenBuckets } from '../server/token_buckets.ts';
import { type FromMember, type Question, RATE_LIMITS, TAKE_WORDS, type ToMember } from './messages.ts';

/** A member that does not say in time what it counted is shown with what it said last. */
const COUNT_WITHIN_MS = 1_000;

/** A member, as the switchboard knows it. */
export interface Peer {
  send(message: ToMember): void;
}

interface Known {
  /** What it said last. */
  last: Snapshot;
  /** Questions for its numbers that it has not answered yet, by their id. */
  readonly asked: Map<number, (own: Snapshot) => void>;
  /** Streams that it has open, by address. */
  readonly streams: Map<string, number>;
}

export class Switchboard {
  readonly #counts: OwnCounts;
  readonly #buckets = new Map<number, TokenBuckets>();
  readonly #peers = new Map<Peer, Known>();
  #nextId = 0;
  /** Counters and histograms of members that have ended: a sum that fell would look like a restart of everything. */
  #ended: Promise<Snapshot> = Promise.resolve([]);

  /** `now` never goes back. */
  constructor(limits: LimitSettings, now: () => number = () => performance.now()) {
    this.#counts = new OwnCounts(limits, now);
  }

  add(peer: Peer): void {
    this.#peers.set(peer, { last: [], asked: new Map(), streams: new Map() });
  }

  /** What it had open is closed, and what it counted stays. */
  remove(peer: Peer): void {
    const known = this.#peers.get(peer);
    if (known === undefined) return;
    this.#peers.delete(peer);
    for (const resolve of known.asked.values()) resolve(known.last);
    for (const [address, open] of known.streams)
      for (let left = open; left > 0; left--) this.#counts.streams.leave(address);
    const lasting = known.last.filter(isLasting);
    this.#ended = this.#ended.then((ended) =>
      AggregatorRegistry.aggregate([ended, lasting]).getMetricsAsJSON(),
    );
  }

  hear(from: Peer, message: FromMember): void {
    const known = this.#peers.get(from);
    if (known === undefined) return;
    switch (message.kind) {
      case 'ask':
        void this.#answer(from, known, message.question).then((answer) =>
          from.send({ kind: 'answer', id: message.id, answer }),
        );
        break;
      case 'left':
        this.#leave(known, message.address);
        break;
      case 'snapshot':
        known.last = message.own;
        if (message.id !== undefined) known.asked.get(message.id)?.(message.own);
        break;
      case 'news':
        for (const peer of this.#peers.keys()) if (peer !== from) peer.send(message);
        break;
    }
  }

  async #answer(from: Peer, known: Known, question: Question): Promise<unknown> {
    if ('take' in question) return this.#take(question.take);
    if ('enter' in question) return this.#enter(known, question.enter);
    known.last = question.collect;
    // Before the others are asked: one that ends meanwhile is counted by what it says or said last, and not twice.
    const ended = this.#ended;
    const others = [...this.#peers].filter(([peer]) => peer !== from);
    const counted = await Promise.all(others.map(([peer, other]) => this.#count(peer, other)));
    return [...counted, await ended];
  }

  #take(words: readonly number[]): number[] {
    const waits: number[] = [];
    for (let at = 0; at < words.length; at += TAKE_WORDS) {
      const [limit = 0, high = 0, low = 0, tokens = 0] = words.slice(at, at + TAKE_WORDS);
      const buckets = this.#bucketsOf(limit);
      waits.push(tokens > 0 ? buckets.take({ high, low }, tokens) : buckets.wait({ high, low }));
    }
    return waits;
  }

  /** Made when they are first asked for: those of claims reserve 32 MB. */
  #bucketsOf(limit: number): TokenBuckets {
    let buckets = this.#buckets.get(limit);
    if (buckets === undefined) {
      buckets = this.#counts.buckets(RATE_LIMITS[limit] ?? 'claims');
      this.#buckets.set(limit, buckets);
    }
    return buckets;
  }

  async #enter({ streams }: Known, address: string): Promise<boolean> {
    const isIn = await this.#counts.streams.enter(address);
    if (isIn) streams.set(address, (streams.get(address) ?? 0) + 1);
    return isIn;
  }

  #leave({ streams }: Known, address: string): void {
    const left = (streams.get(address) ?? 1) - 1;
    if (left === 0) streams.delete(address);
    else streams.set(address, left);
    this.#counts.streams.leave(address);
  }

  async #count(peer: Peer, known: Known): Promise<Snapshot> {
    const id = this.#nextId++;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Snapshot>((resolve) => {
        timer = setTimeout(() => resolve(known.last), COUNT_WITHIN_MS);
        known.asked.set(id, resolve);
        peer.send({ kind: 'count', id });
      });
    } finally {
      clearTimeout(timer);
      known.asked.delete(id);
    }
  }
}

/** A gauge says what is now, and of a process that has ended nothing is. */
function isLasting({ type }: Snapshot[number]): boolean {
  // prom-client's types say an enum of numbers; what it gives are these words.
  return ['counter', 'histogram'].includes(String(type));
}
