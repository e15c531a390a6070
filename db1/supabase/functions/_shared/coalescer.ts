// Many requests, one statement. While a flush is under way, whoever arrives waits; when it returns, all of them go together.
// There is no timer: a lone request leaves at once, and a batch grows exactly as long as the database is busy. Measured on
// two cores: 26k claims/s on one connection against 5.9k/s with a pool of ten and a statement each.

import { HttpError } from './errors.ts';
import { byHalves } from './halving.ts';

/** What a flush answers for a request that met a passing obstacle: it goes into the next flush. */
export const RETRY: unique symbol = Symbol('retry');

/** More per statement gains nothing: at 256 connections the average batch is 128. */
export const MAX_PER_FLUSH = 256;
/** About half a second of work at 20k/s. Beyond it, waiting longer helps nobody and costs memory. */
export const MAX_WAITING = 10_000;
/** Of requests that are weighed, in bytes: ten thousand of a megabyte each would be more memory than there is. */
const MAX_WAITING_WEIGHT = 64 * 1024 * 1024;
/** A request that met an obstacle this often in a row is told to come back later: after about a second. */
export const MAX_RETRIES = 20;
/** Between two flushes of nothing but obstacles: whoever is in the way needs a moment. */
const RETRY_PAUSE_MS = 50;

export interface CoalescerOptions<Request> {
  maxWaiting?: number;
  /** True for an error that one request of the batch may have caused: the batch is then halved until it stands alone. */
  mayBeOneMembers?: (error: unknown) => boolean;
  /**
   * For requests of very different sizes, in bytes: a flush carries no more than `maxWeight`, or one request that is heavier,
   * and no more than `maxWaitingWeight` waits.
   */
  weigh?: (request: Request) => number;
  maxWeight?: number;
  maxWaitingWeight?: number;
}

export type Flush<Request, Answer> = (requests: Request[]) => Promise<(Answer | typeof RETRY)[]>;

interface Entry<Request, Answer> {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  readonly weight: number;
  retries: number;
}

export class Coalescer<Request, Answer> {
  readonly #flush: Flush<Request, Answer>;
  readonly #maxWaiting: number;
  readonly #mayBeOneMembers: (error: unknown) => boolean;
  readonly #weigh: (request: Request) => number;
  readonly #maxWeight: number;
  readonly #maxWaitingWeight: number;
  #waiting: Entry<Request, Answer>[] = [];
  #waitingWeight = 0;
  #running: Promise<void> | undefined;
  #closed = false;

  /** `flush` answers in the order of the requests, one answer each. */
  constructor(flush: Flush<Request, Answer>, options: CoalescerOptions<Request> = {}) {
    this.#flush = flush;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING;
    this.#mayBeOneMembers = options.mayBeOneMembers ?? (() => false);
    this.#weigh = options.weigh ?? (() => 0);
    this.#maxWeight = options.maxWeight ?? Number.POSITIVE_INFINITY;
    this.#maxWaitingWeight = options.maxWaitingWeight ?? MAX_WAITING_WEIGHT;
  }

  submit(request: Request): Promise<Answer> {
    if (this.#closed) return Promise.reject(new HttpError('shutting_down'));
    const weight = this.#weigh(request);
    if (this.#waiting.length >= this.#maxWaiting || this.#waitingWeight + weight > this.#maxWaitingWeight)
      return Promise.reject(new HttpError('overloaded'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject, weight, retries: 0 });
      this.#waitingWeight += weight;
      this.#running ??= this.#run();
    });
  }

  /** Takes nothing new; returns when everything that was accepted has its answer. */
  async drain(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    // One microtask, so that what is submitted in the same turn leaves together.
    await undefined;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#nextSize());
      for (const { weight } of batch) this.#waitingWeight -= weight;
      const answered = await this.#send(batch);
      if (answered === 0) await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS));
    }
    this.#running = undefined;
  }

  /** How many of those who wait leave together. */
  #nextSize(): number {
    const most = Math.min(this.#waiting.length, MAX_PER_FLUSH);
    let weight = 0;
    for (let size = 0; size < most; size++) {
      weight += (this.#waiting[size] as Entry<Request, Answer>).weight;
      if (weight > this.#maxWeight) return Math.max(1, size);
    }
    return most;
  }

  /** Flushes a batch, by halves where it is spoiled. Returns how many have their answer. */
  async #send(batch: readonly Entry<Request, Answer>[]): Promise<number> {
    let answered = 0;
    await byHalves(batch, {
      work: async (members) => {
        const answers = await this.#flush(members.map((entry) => entry.request));
        if (answers.length !== members.length)
          throw new Error(`a flush of ${members.length} requests gave ${answers.length} answers`);
        answered += this.#settle(members, answers);
      },
      mayBeOneMembers: this.#mayBeOneMembers,
      fail: (members, error) => {
        for (const entry of members) entry.reject(error);
        answered += members.length;
      },
    });
    return answered;
  }

  #settle(batch: readonly Entry<Request, Answer>[], answers: (Answer | typeof RETRY)[]): number {
    const again: Entry<Request, Answer>[] = [];
    for (const [index, entry] of batch.entries()) {
      const answer = answers[index] as Answer | typeof RETRY;
      if (answer !== RETRY) entry.resolve(answer);
      else if (entry.retries++ < MAX_RETRIES) again.push(entry);
      else entry.reject(new HttpError('busy'));
    }
    // They came first, so they go first.
    if (again.length > 0) this.#waiting = again.concat(this.#waiting);
    for (const { weight } of again) this.#waitingWeight += weight;
    return batch.length - again.length;
  }
}
