// Sessions that were signed out before their time. A cookie carries its own proof, so somebody has to remember which ones are
// not good any more: this process does, and the intake for all processes.

import type { CallFunction } from '#core/call_function.ts';
import { within } from '#core/deadline.ts';
import type { Clock, Log } from '#core/ports.ts';

export interface Session {
  readonly id: string;
  readonly expiresMs: number;
}

/** Signing out in one process is known to the others after so long. */
const READ_EVERY_MS = 1_000;
/** While the intake is away operators need the console most: after so long they are let in by what is known here. */
const WAIT_MS = 500;

export class EndedSessions {
  readonly #intake: CallFunction | undefined;
  readonly #now: Clock;
  readonly #log: Log | undefined;
  readonly #againMs: number;
  /** Until when each would have been good; past that it is refused anyway. */
  readonly #ended = new Map<string, number>();
  #readAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(now: Clock, intake?: CallFunction, log?: Log, againMs = READ_EVERY_MS) {
    this.#now = now;
    this.#intake = intake;
    this.#log = log;
    this.#againMs = againMs;
  }

  /** By what is known here and now. Asks the intake, without waiting for it, where that is a second ago. */
  isKnown(session: Session): boolean {
    void this.#read();
    return this.#ended.has(session.id);
  }

  async has(session: Session): Promise<boolean> {
    const reading = this.#read();
    // Too late is no failure here.
    if (reading !== undefined) await within(() => reading, WAIT_MS).catch(() => undefined);
    return this.#ended.has(session.id);
  }

  /** Ends it here at once, and for the other processes when the intake has taken it. */
  async end(session: Session): Promise<void> {
    this.#forget();
    this.#ended.set(session.id, session.expiresMs);
    try {
      await this.#tell(session);
    } catch (error) {
      this.#log?.warn('a sign-out is known to this process only, until the intake is back', { cause: error });
      this.#tellLater(session);
    }
  }

  async #tell({ id, expiresMs }: Session): Promise<void> {
    const p_ends_at = new Date(expiresMs).toISOString();
    await this.#intake?.('session_end', { p_session_id: id, p_ends_at });
  }

  /** Again and again, until the intake has taken it or it would be over anyway. */
  #tellLater(session: Session): void {
    const again = async (): Promise<void> => {
      if (session.expiresMs <= this.#now()) return;
      await this.#tell(session).catch(() => this.#tellLater(session));
    };
    setTimeout(() => void again(), this.#againMs).unref();
  }

  /** One question at a time, and one a second at most. Never rejects. */
  #read(): Promise<void> | undefined {
    if (this.#intake === undefined) return undefined;
    if (this.#reading !== undefined) return this.#reading;
    if (this.#now() - this.#readAtMs < READ_EVERY_MS) return undefined;
    this.#readAtMs = this.#now();
    this.#reading = this.#ask(this.#intake).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #ask(intake: CallFunction): Promise<void> {
    try {
      const rows = await intake<{ session_id: string; ends_ms: number }>('sessions_ended', {});
      this.#forget();
      for (const { session_id, ends_ms } of rows) this.#ended.set(session_id, Number(ends_ms));
    } catch (error) {
      // The outage is told of where it hurts; here the sessions that are known remain.
      this.#log?.debug('sessions that ended elsewhere are not known', { cause: error });
    }
  }

  #forget(): void {
    const now = this.#now();
    for (const [id, endsMs] of this.#ended) if (endsMs <= now) this.#ended.delete(id);
  }
}
