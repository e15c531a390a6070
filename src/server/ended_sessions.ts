// Sessions that operators signed out before they expired. A cookie carries its own proof, so this process remembers which
// sessions are no longer valid, and the intake remembers it for all servers.

import type { CallFunction } from '#core/call_function.ts';
import type { Clock, Log } from '#core/ports.ts';
import { READ_EVERY_MS, Refreshed } from './refreshed.ts';

export interface Session {
  readonly id: string;
  readonly expiresMs: number;
}

export interface EndedOptions {
  readonly againMs?: number;
  tell?(session: Session): void;
}

export class EndedSessions {
  readonly #intake: CallFunction | undefined;
  readonly #now: Clock;
  readonly #log: Log | undefined;
  readonly #againMs: number;
  readonly #tellOthers: (session: Session) => void;
  /** Until when each would have been good; past that it is refused anyway. */
  readonly #ended = new Map<string, number>();
  readonly #refreshed: Refreshed | undefined;

  /** `tell` is for the other processes of this command: they know before the intake does. */
  constructor(
    now: Clock,
    intake?: CallFunction,
    log?: Log,
    { againMs = READ_EVERY_MS, tell = () => undefined }: EndedOptions = {},
  ) {
    this.#now = now;
    this.#intake = intake;
    this.#log = log;
    this.#againMs = againMs;
    this.#tellOthers = tell;
    this.#refreshed = intake && new Refreshed(() => this.#read(intake), now, log);
  }

  /** By what is known here and now. Asks the intake, without waiting for it, where that is a second ago. */
  isKnown(session: Session): boolean {
    void this.#refreshed?.touch();
    return this.#ended.has(session.id);
  }

  async has(session: Session): Promise<boolean> {
    await this.#refreshed?.settled();
    return this.#ended.has(session.id);
  }

  /** Another process of this command ended it. */
  hear({ id, expiresMs }: Session): void {
    this.#forget();
    this.#ended.set(id, expiresMs);
  }

  /** Ends it here at once, and for other servers when the intake has taken it. */
  async end(session: Session): Promise<void> {
    this.hear(session);
    this.#tellOthers(session);
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

  async #read(intake: CallFunction): Promise<void> {
    const rows = await intake<{ session_id: string; ends_ms: number }>('sessions_ended', {});
    this.#forget();
    for (const { session_id, ends_ms } of rows) this.#ended.set(session_id, Number(ends_ms));
  }

  #forget(): void {
    const now = this.#now();
    for (const [id, endsMs] of this.#ended) if (endsMs <= now) this.#ended.delete(id);
  }
}
