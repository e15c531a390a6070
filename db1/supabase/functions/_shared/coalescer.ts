// Many requests, one statement. Requests that arrive during a flush wait; when it returns, they leave together in the next.
// No timer delays them: a lone request leaves when the event loop has read what else has arrived, and a batch grows exactly as long as
// the database is busy. Measured on two cores: 26k claims/s on one connection against 5.9k/s with a pool of ten and a statement each.
//
// Requests wait by key (pool, endpoint, site), and a flush takes from the keys in turn: one key's crowd fills what the others
// leave free. A key that meets an obstacle goes to the side lane (side_lane.ts), and the others go on without it.

import { HttpError } from './errors.ts';
import { mayPass } from './failure.ts';
import type { Clock, Turn } from './ports.ts';
import { byQueue, RequestQueue, type Totals, type Waiting } from './request_queue.ts';
import { PATIENCE_MS, SideLane } from './side_lane.ts';

/** What a flush answers for a request that met a passing obstacle: it goes into the next flush. */
export const RETRY: unique symbol = Symbol('retry');

/** More per statement gains nothing. */
export const MAX_PER_FLUSH = 256;
/** What a statement costs by itself is shared by so many: to wait for more would only let the database stand still. */
export const ENOUGH = 64;
/** About half a second of work at 20k/s. A longer queue only adds waiting time and memory. */
export const MAX_WAITING = 10_000;
/** Of requests that are weighed, in bytes: ten thousand of a megabyte each would be more memory than there is. */
const MAX_WAITING_WEIGHT = 32 * 1024 * 1024;

export interface CoalescerOptions<Request> {
  /** Whose request it is: one key can neither hold up nor spoil another. All requests have one where left out. */
  keyOf?: (request: Request) => string;
  /** How many may wait of a key that is alone; all keys together have twice the room (see #hasRoom). */
  maxWaiting?: number;
  /** True for an error that one request of the batch may have caused: the batch is then halved until it stands alone. */
  mayBeOneMembers?: (error: unknown) => boolean;
  /**
   * For requests of very different sizes, in bytes: a flush carries no more than `maxWeight`, or one request that is heavier,
   * and no more than `maxWaitingWeight` waits, as with `maxWaiting`.
   */
  weigh?: (request: Request) => number;
  maxWeight?: number;
  maxWaitingWeight?: number;
  /** Told when a key met an obstacle that is its own, and when it has come through. */
  onStuck?: (key: string, isStuck: boolean) => void;
  now?: Clock;
  /**
   * Waited for before a flush of few requests, so that what has arrived by then leaves with them; a microtask where left out. A flush
   * that left at once would carry half of the clients while the answers of the other half go out.
   */
  turn?: Turn;
}

/** `isAside` says that all requests have one key, and that no other key waits for this flush. */
export type Flush<Request, Answer> = (
  requests: Request[],
  isAside: boolean,
) => Promise<(Answer | typeof RETRY)[]>;

export class Coalescer<Request, Answer> {
  readonly #flush: Flush<Request, Answer>;
  readonly #options: Required<CoalescerOptions<Request>>;
  readonly #side: SideLane<Request, Answer>;
  /** Those that have requests waiting or under way, or are aside. */
  readonly #queues = new Map<string, RequestQueue<Request, Answer>>();
  readonly #totals: Totals = { count: 0, weight: 0 };
  /** The queues that have requests for the common lane; the first is served next. */
  readonly #line: RequestQueue<Request, Answer>[] = [];
  #isRunning = false;
  /** Accepted and not answered yet. */
  #open = 0;
  #closed = false;
  #drained: (() => void) | undefined;

  /** `flush` answers in the order of the requests, one answer each. */
  constructor(flush: Flush<Request, Answer>, options: CoalescerOptions<Request> = {}) {
    this.#flush = flush;
    this.#options = {
      keyOf: () => '',
      maxWaiting: MAX_WAITING,
      mayBeOneMembers: () => false,
      weigh: () => 0,
      maxWeight: Number.POSITIVE_INFINITY,
      maxWaitingWeight: MAX_WAITING_WEIGHT,
      onStuck: () => undefined,
      now: Date.now,
      turn: async () => undefined,
      ...options,
    };
    this.#side = new SideLane({
      maxPerFlush: MAX_PER_FLUSH,
      maxWeight: this.#options.maxWeight,
      ask: (members) => this.#ask(members, true),
      settle: (members, answers) => this.#settle(members, answers as (Answer | typeof RETRY)[]),
      reject: (members, error) => this.#reject(members, error),
      isOverdue: (member) => this.#isOverdue(member),
      mayBeOneMembers: this.#options.mayBeOneMembers,
      onStuck: this.#options.onStuck,
      isClosed: () => this.#closed,
      now: this.#options.now,
    });
  }

  submit(request: Request): Promise<Answer> {
    if (this.#closed) return Promise.reject(new HttpError('shutting_down'));
    const key = this.#options.keyOf(request);
    const weight = this.#options.weigh(request);
    const known = this.#queues.get(key);
    if (!this.#hasRoom(known, weight)) return Promise.reject(new HttpError('overloaded'));
    const queue = known ?? this.#addQueue(key);
    return new Promise((resolve, reject) => {
      queue.push({ request, resolve, reject, weight, queue, stuckSinceMs: undefined, isAlone: false });
      this.#open++;
      if (queue.isAside) queue.wake?.();
      else this.#standInLine(queue);
    });
  }

  /** Takes nothing new; returns when everything that was accepted has its answer. */
  async drain(): Promise<void> {
    this.#closed = true;
    for (const queue of this.#queues.values()) queue.wake?.();
    if (this.#open === 0) return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
  }

  /**
   * A key may have at most as many requests waiting as there are places still free. So one key alone fills half of the room, two
   * keys fill a third each, and the next key always finds room.
   */
  #hasRoom(queue: RequestQueue<Request, Answer> | undefined, weight: number): boolean {
    const { maxWaiting, maxWaitingWeight } = this.#options;
    return (
      (queue?.length ?? 0) < 2 * maxWaiting - this.#totals.count &&
      (queue?.weight ?? 0) + weight <= 2 * maxWaitingWeight - this.#totals.weight
    );
  }

  #addQueue(key: string): RequestQueue<Request, Answer> {
    const queue = new RequestQueue<Request, Answer>(key, this.#totals);
    this.#queues.set(key, queue);
    return queue;
  }

  #standInLine(queue: RequestQueue<Request, Answer>): void {
    if (!queue.isInLine) {
      queue.isInLine = true;
      this.#line.push(queue);
    }
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    while (this.#line.length > 0) {
      if (!this.#hasEnough()) await this.#options.turn();
      const served: RequestQueue<Request, Answer>[] = [];
      await this.#send(this.#take(served));
      for (const queue of served) this.#forgetIfIdle(queue);
    }
    this.#isRunning = false;
  }

  #hasEnough(): boolean {
    return this.#line.reduce((waiting, queue) => waiting + queue.length, 0) >= ENOUGH;
  }

  /** The next batch: of each queue its share, and of those with more what the others leave free. */
  #take(served: RequestQueue<Request, Answer>[]): Waiting<Request, Answer>[] {
    let batch: Waiting<Request, Answer>[] = [];
    let room = this.#options.maxWeight;
    while (this.#line.length > 0 && batch.length < MAX_PER_FLUSH) {
      const queue = this.#line[0] as RequestQueue<Request, Answer>;
      const share = Math.ceil((MAX_PER_FLUSH - batch.length) / this.#line.length);
      const weight = queue.weight;
      const part = queue.take(share, room, batch.length === 0 ? 1 : 0);
      if (part.length === 0) break;
      room -= weight - queue.weight;
      batch = batch.length === 0 ? part : batch.concat(part);
      served.push(queue);
      this.#line.shift();
      queue.isInLine = queue.length > 0;
      if (queue.isInLine) this.#line.push(queue);
    }
    return batch;
  }

  async #send(batch: Waiting<Request, Answer>[]): Promise<void> {
    let again: Waiting<Request, Answer>[];
    try {
      again = this.#settle(batch, await this.#ask(batch, false));
    } catch (error) {
      if (mayPass(error) || (batch.length > 1 && this.#options.mayBeOneMembers(error)))
        for (const [queue, part] of byQueue(batch)) this.#putAside(queue, part);
      else this.#reject(batch, error);
      return;
    }
    if (again.length === 0) return;
    const sent = byQueue(batch);
    for (const [queue, part] of byQueue(again)) {
      if (part.length === sent.get(queue)?.length) {
        this.#putAside(queue, part);
      } else {
        queue.putFirst(part);
        this.#standInLine(queue);
      }
    }
  }

  async #ask(
    members: readonly Waiting<Request, Answer>[],
    isAside: boolean,
  ): Promise<(Answer | typeof RETRY)[]> {
    const answers = await this.#flush(
      members.map((member) => member.request),
      isAside,
    );
    if (answers.length !== members.length)
      throw new Error(`a flush of ${members.length} requests gave ${answers.length} answers`);
    return answers;
  }

  /** Gives the answers out. Returns those that have to be asked again. */
  #settle(
    members: readonly Waiting<Request, Answer>[],
    answers: readonly (Answer | typeof RETRY)[],
  ): Waiting<Request, Answer>[] {
    const again: Waiting<Request, Answer>[] = [];
    for (let index = 0; index < members.length; index++) {
      const member = members[index] as Waiting<Request, Answer>;
      const answer = answers[index] as Answer | typeof RETRY;
      if (answer !== RETRY) {
        member.resolve(answer);
      } else if (this.#isOverdue(member)) {
        member.reject(new HttpError('busy'));
      } else {
        member.stuckSinceMs ??= this.#options.now();
        again.push(member);
      }
    }
    this.#countDown(members.length - again.length);
    return again;
  }

  #reject(members: readonly Waiting<Request, Answer>[], error: unknown): void {
    for (const member of members) member.reject(error);
    this.#countDown(members.length);
  }

  #countDown(answered: number): void {
    this.#open -= answered;
    if (this.#open === 0) this.#drained?.();
  }

  #isOverdue({ stuckSinceMs }: Waiting<Request, Answer>): boolean {
    return stuckSinceMs !== undefined && this.#options.now() - stuckSinceMs > PATIENCE_MS;
  }

  /** `part` has met an obstacle, alone or with others: it goes first. */
  #putAside(queue: RequestQueue<Request, Answer>, part: readonly Waiting<Request, Answer>[]): void {
    queue.putFirst(part);
    queue.isAside = true;
    if (queue.isInLine) this.#line.splice(this.#line.indexOf(queue), 1);
    queue.isInLine = false;
    void this.#side.run(queue).then(() => this.#takeBack(queue));
  }

  #takeBack(queue: RequestQueue<Request, Answer>): void {
    queue.isAside = false;
    if (queue.length > 0) this.#standInLine(queue);
    else this.#forgetIfIdle(queue);
  }

  #forgetIfIdle(queue: RequestQueue<Request, Answer>): void {
    if (queue.length === 0 && !queue.isAside) this.#queues.delete(queue.key);
  }
}
