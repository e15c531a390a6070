// Large bodies take turns. One of 3 MB keeps this process busy for tens of milliseconds and the database for longer, so a few
// are read at a time, and the rest waits in the senders' sockets, where it costs neither memory nor time. After each one there is
// a rest of the same length, so that large bodies take half of the machine and claims have the other half.

import { HttpError } from '#core/errors.ts';

/** Smaller bodies do not wait: a read of this size takes under a millisecond. */
export const LARGE_BYTES = 64 * 1024;
/**
 * What one statement records (record.ts): one of Meta's largest bodies at a time. Beside 256 senders of 3 MB the p99 of claims was
 * 326 ms with 8 MB, so that one body was read while another was recorded, and 190 ms with 4 MB.
 */
export const ROOM_BYTES = 4 * 1024 * 1024;
/** Less than a provider waits for its answer, with time left to read the body and to record it. */
const PATIENCE_MS = 5_000;
/** A turn that took longer waited for its sender or for DB2: the machine had its rest meanwhile. */
const REST_MAX_MS = 250;

export interface LargeBodiesOptions {
  readonly roomBytes?: number;
  readonly patienceMs?: number;
  readonly now?: () => number;
}

interface Waiter {
  readonly bytes: number;
  readonly begin: () => void;
}

export class LargeBodies {
  readonly #roomBytes: number;
  readonly #patienceMs: number;
  readonly #now: () => number;
  #takenBytes = 0;
  /** By target (an endpoint), so that the crowd at one does not hold up another. The first target is served next. */
  readonly #waiting = new Map<string, Waiter[]>();

  constructor(options: LargeBodiesOptions = {}) {
    const { roomBytes = ROOM_BYTES, patienceMs = PATIENCE_MS, now = () => performance.now() } = options;
    this.#roomBytes = roomBytes;
    this.#patienceMs = patienceMs;
    this.#now = now;
  }

  /**
   * Resolves when it is the body's turn, with what ends its turn. Rejects with 503 where that takes too long. A body that is
   * larger than all the room has its turn alone. `signal` gives the place up.
   */
  async enter(target: string, bytes: number, signal: AbortSignal): Promise<() => void> {
    if (this.#waiting.size > 0 || !this.#fits(bytes)) await this.#wait(target, bytes, signal);
    else this.#takenBytes += bytes;
    const beganMs = this.#now();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const restMs = Math.min(this.#now() - beganMs, REST_MAX_MS);
      setTimeout(() => this.#free(bytes), restMs).unref();
    };
  }

  #free(bytes: number): void {
    this.#takenBytes -= bytes;
    this.#serve();
  }

  #fits(bytes: number): boolean {
    return this.#takenBytes === 0 || this.#takenBytes + bytes <= this.#roomBytes;
  }

  #wait(target: string, bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (end: () => void): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
        end();
      };
      const waiter = { bytes, begin: () => settle(resolve) };
      const giveUp = (): void => {
        this.#forget(target, waiter);
        settle(() => reject(new HttpError('overloaded')));
      };
      const timer = setTimeout(giveUp, this.#patienceMs);
      signal.addEventListener('abort', giveUp);
      const others = this.#waiting.get(target);
      if (others === undefined) this.#waiting.set(target, [waiter]);
      else others.push(waiter);
    });
  }

  #forget(target: string, waiter: Waiter): void {
    const left = (this.#waiting.get(target) ?? []).filter((one) => one !== waiter);
    if (left.length === 0) this.#waiting.delete(target);
    else this.#waiting.set(target, left);
    // It may have been the one that all others waited for.
    this.#serve();
  }

  #serve(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined) return;
      const [target, [waiter, ...others]] = first;
      if (waiter === undefined || !this.#fits(waiter.bytes)) return;
      this.#waiting.delete(target);
      if (others.length > 0) this.#waiting.set(target, others);
      this.#takenBytes += waiter.bytes;
      waiter.begin();
    }
  }
}
