// Where the requests of a key go that met an obstacle (a lock, a deadlock, a statement that took too long, an answer "ask
// again"): each key by itself, one statement at a time, halved down to the request that is stuck, on connections that the
// common lane does not use. The common lane goes on without the key until the key has come through.

import { HttpError } from './errors.ts';
import { mayPass } from './failure.ts';
import { byHalves } from './halving.ts';
import type { Clock } from './ports.ts';
import type { RequestQueue, Waiting } from './request_queue.ts';

/**
 * Statements of the side lane that run at once, each on a connection of its own. More than one or two, because a key that needs
 * nothing but its turn must not wait for a pool whose slots are being brought back, which takes seconds.
 */
export const ASIDE_CONNECTIONS = 4;
/** A request that met an obstacle so long ago is told to come back later. As long as a statement may wait for a lock elsewhere. */
export const PATIENCE_MS = 2_000;
/**
 * A key whose own statement failed stays aside for this long after it. A client that is told to come back does so after a
 * second, with the same request: the common lane shall not meet it again.
 */
export const ASIDE_MS = 5_000;
/** Between two statements of a key that brought no answer: the session in the way needs a moment. */
const PAUSE_MS = 50;

export interface SideLaneWork<Request, Answer> {
  readonly maxPerFlush: number;
  readonly maxWeight: number;
  /** One answer each, in their order, or a failure that has done nothing. */
  ask(members: readonly Waiting<Request, Answer>[]): Promise<unknown[]>;
  /** Gives the answers out. Returns those that have to be asked again. */
  settle(members: readonly Waiting<Request, Answer>[], answers: unknown[]): Waiting<Request, Answer>[];
  reject(members: readonly Waiting<Request, Answer>[], error: unknown): void;
  isOverdue(member: Waiting<Request, Answer>): boolean;
  mayBeOneMembers(error: unknown): boolean;
  onStuck(key: string, isStuck: boolean): void;
  isClosed(): boolean;
  now: Clock;
}

export class SideLane<Request, Answer> {
  readonly #work: SideLaneWork<Request, Answer>;
  readonly #turns = new Turns(ASIDE_CONNECTIONS);

  constructor(work: SideLaneWork<Request, Answer>) {
    this.#work = work;
  }

  /** Serves the queue until the common lane can have it again. */
  async run(queue: RequestQueue<Request, Answer>): Promise<void> {
    const { now, isClosed, onStuck } = this.#work;
    let isStuck = false;
    for (;;) {
      const leftMs = queue.asideUntilMs - now();
      if (queue.length > 0) {
        const { answered, isClean } = await this.#flush(queue);
        if (isClean && now() >= queue.asideUntilMs) break;
        if (!isClean && !isStuck) onStuck(queue.key, true);
        isStuck ||= !isClean;
        if (answered === 0) await pause(PAUSE_MS);
      } else if (leftMs > 0 && !isClosed()) {
        await rest(queue, leftMs);
      } else break;
    }
    if (isStuck) onStuck(queue.key, false);
  }

  async #flush(queue: RequestQueue<Request, Answer>): Promise<{ answered: number; isClean: boolean }> {
    const work = this.#work;
    let answered = 0;
    let isClean = true;
    await byHalves(queue.takeAside(work.maxPerFlush, work.maxWeight), {
      work: async (members) => {
        if (members.every((member) => work.isOverdue(member))) throw new HttpError('busy');
        const again = work.settle(members, await this.#ask(queue, members));
        answered += members.length - again.length;
        if (again.length === 0) return;
        isClean = false;
        // Where none of them was answered, those behind them may have better luck.
        if (again.length < members.length) queue.putFirst(again);
        else queue.putLast(again);
      },
      // A refusal of our own, that there was no turn, is all members': halved, each part would wait for a turn again.
      mayBeOneMembers: (error) =>
        mayPass(error) || (!(error instanceof HttpError) && work.mayBeOneMembers(error)),
      fail: (members, error) => {
        isClean = false;
        if (mayPass(error)) {
          for (const member of members) member.isAlone = true;
          queue.putLast(members);
        } else {
          work.reject(members, error);
          answered += members.length;
        }
      },
    });
    return { answered, isClean };
  }

  async #ask(
    queue: RequestQueue<Request, Answer>,
    members: readonly Waiting<Request, Answer>[],
  ): Promise<unknown[]> {
    await this.#turns.take(PATIENCE_MS);
    try {
      return await this.#work.ask(members);
    } catch (error) {
      const nowMs = this.#work.now();
      if (mayPass(error) || this.#work.mayBeOneMembers(error)) queue.asideUntilMs = nowMs + ASIDE_MS;
      for (const member of members) member.stuckSinceMs ??= nowMs;
      throw error;
    } finally {
      this.#turns.pass();
    }
  }
}

/** A number of turns at a time; waiting callers get the next ones in the order of asking. */
class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(free: number) {
    this.#free = free;
  }

  /** Throws busy if no turn becomes free in this time. */
  async take(patienceMs: number): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const granted = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(granted), 1);
        reject(new HttpError('busy'));
      }, patienceMs);
      this.#waiting.push(granted);
    });
  }

  pass(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until a request arrives, or the time is over. */
function rest<Request, Answer>(queue: RequestQueue<Request, Answer>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => queue.wake?.(), ms);
    queue.wake = () => {
      clearTimeout(timer);
      queue.wake = undefined;
      resolve();
    };
  });
}
