// One message in the hands of one worker, from take to finish.

import type { Log } from '../ports.ts';
import { shortened } from '../text.ts';
import { readTraceparent, type TraceParent } from '../traceparent.ts';
import { hookKeyOf, identityOf, readPayload } from './payload.ts';
import type { Finish, Payload, PoolConfig, TakenMessage, Verdict } from './ports.ts';

/** The wait after the first failure; it doubles with each, up to the longest. */
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
/** How long a message stays hidden when its target is down; the breaker decides when the worker looks again. */
const OUTAGE_RETRY_MS = 500;
/** After this many deliveries that no worker finished, the message itself may be what kills them. */
const MAX_TAKEOVERS = 10;

const ENDED_STATES: ReadonlySet<string> = new Set([
  'released',
  'expired',
  'refused',
  'discarded',
  'voided',
  'committed',
]);

/** Reasons are texts from outside: what a database or a hook had to say about a message. */
const MAX_REASON_CHARS = 500;

/** What bridge_take calls a claim that is not the one its message tells of. */
const MISMATCH = 'mismatch';
/** What it calls a claim that is going to end; its message is left alone until it did. */
const ENDING = 'ending';
const ENDING_RETRY_MS = 5_000;

export class Delivery {
  readonly #taken: TakenMessage;
  #payload: Payload | undefined;
  #config: PoolConfig | undefined;
  #verdict: Verdict | undefined;
  #reason: string | null = null;
  #isObstructed = false;
  #fixedDelayMs: number | undefined;
  #isFirst = false;

  constructor(taken: TakenMessage) {
    this.#taken = taken;
    const payload = readPayload(taken.message);
    if (typeof payload === 'string') this.end('dead_letter', payload);
    else this.#payload = payload;
    if (this.#payload !== undefined && taken.claim_state === 'validated') this.validated();
  }

  /** As the intake gave it. */
  get message(): TakenMessage {
    return this.#taken;
  }

  get msgId(): number {
    return this.#taken.msg_id;
  }

  get readCt(): number {
    return this.#taken.read_ct;
  }

  get isOpen(): boolean {
    return this.#verdict === undefined;
  }

  get payload(): Payload {
    if (this.#payload === undefined) throw new Error('a malformed message has no payload');
    return this.#payload;
  }

  get config(): PoolConfig {
    if (this.#config === undefined) throw new Error('a delivery without a pool has no configuration');
    return this.#config;
  }

  /** What every line about it says, so that one claim can be followed through the log. */
  get names(): { msg_id: number; pool_id: string | null; claim_id: string | null } {
    return {
      msg_id: this.msgId,
      pool_id: this.#payload?.pool_id ?? null,
      claim_id: this.#payload?.claim_id ?? null,
    };
  }

  /** Whose way it goes: the claim's id, or what stands for it. Undefined where the message says neither. */
  get subject(): string | undefined {
    return this.#payload === undefined ? undefined : identityOf(this.#payload);
  }

  /** The same, of a message that says which. */
  get identity(): string {
    return identityOf(this.payload);
  }

  /** The trace that the claim's caller named. */
  get caller(): TraceParent | undefined {
    return readTraceparent(this.#payload?.traceparent);
  }

  /** The same at each try, because the database says what is first (bridge_first_claims). */
  get hookKey(): string {
    return hookKeyOf(this.payload, this.#isFirst);
  }

  /** `isFirst` as the intake says, undefined where it has no such live claim: one that it once had has ended meanwhile. */
  enterFirst(isFirst: boolean | undefined): void {
    this.#isFirst = isFirst ?? false;
    if (isFirst === undefined && this.#taken.claim_state !== null) this.end('gone', 'the claim has ended');
  }

  /** True when a step before this one, or a worker before this one, has had it validated. */
  get isValidated(): boolean {
    return this.payload.state === 'validated';
  }

  /** From now on its payload says `validated`, as the requirement's messages do. */
  validated(): void {
    this.#payload = { ...this.payload, state: 'validated' };
  }

  /** Enters the pool's rules; ends a delivery that has no pool, or no claim of its own that still waits. */
  enter(config: PoolConfig | undefined): void {
    this.#config = config;
    const { claim_state } = this.#taken;
    if (config === undefined) this.end('dead_letter', 'unknown_pool');
    else if (claim_state === MISMATCH)
      this.end('dead_letter', 'malformed: the claim is of another slot, pool or user');
    else if (claim_state === ENDING) this.end('untried', 'the claim is ending', ENDING_RETRY_MS);
    else if (claim_state !== null && ENDED_STATES.has(claim_state))
      this.end('gone', `the claim is ${claim_state}`);
  }

  /** True when it is not tried again: its attempts are used up, or worker after worker was lost with it. */
  get isSpent(): boolean {
    return this.#isLostTooOften || this.#taken.attempts >= this.config.max_retries;
  }

  get #isLostTooOften(): boolean {
    return this.#taken.takeovers >= MAX_TAKEOVERS;
  }

  /** Why a spent message becomes a dead letter. */
  get lastError(): string {
    if (this.#isLostTooOften) return `takeovers: ${MAX_TAKEOVERS} workers were lost with it`;
    const { last_error } = this.payload;
    return typeof last_error === 'string' ? `max_retries: ${last_error}` : 'max_retries';
  }

  end(verdict: Exclude<Verdict, 'validated'>, reason: string | null = null, delayMs?: number): void {
    this.#verdict = verdict;
    this.#reason = reason === null ? null : shortened(reason, MAX_REASON_CHARS);
    this.#isObstructed = false;
    this.#fixedDelayMs = delayMs;
  }

  /** Something else was in the way: not counted, and tried again after a while that grows with its deliveries. */
  endObstructed(reason: string): void {
    this.end('outage', reason);
    this.#isObstructed = true;
  }

  get reason(): string | null {
    return this.#reason;
  }

  toFinish(random: () => number): Finish {
    return {
      msg_id: this.msgId,
      read_ct: this.readCt,
      verdict: this.#verdict ?? 'outage',
      reason: this.#reason,
      delay_ms: this.#fixedDelayMs ?? this.#delayMs(random),
    };
  }

  #delayMs(random: () => number): number {
    if (this.#verdict !== 'retry' && !this.#isObstructed) return OUTAGE_RETRY_MS;
    const tries = this.#isObstructed ? this.readCt : this.#taken.attempts;
    const full = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.max(0, tries - 1));
    // Between half and whole: spread, and never at once.
    return Math.round(full * (0.5 + random() / 2));
  }

  /** Logs one line a message: routine outcomes at debug level, what an operator on call may look for above it. */
  report(log: Log, outcome: string): void {
    // Refusals have a line of their own, for each pool.
    const routine = outcome === 'committed' || outcome === 'gone' || outcome === 'refused';
    if (routine && !log.debugEnabled) return;
    const fields = { ...this.names, read_ct: this.readCt, outcome, reason: this.#reason };
    if (routine) log.debug('delivery', fields);
    else if (outcome === 'dead_letter' || outcome === 'lost_lease') log.warn('delivery', fields);
    else log.info('delivery', fields);
  }
}
