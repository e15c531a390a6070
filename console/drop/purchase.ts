// One buyer's way to a ticket: ask until there is an answer, then follow the claim until it is a ticket.

import { solveChallenge } from '../../packages/client/src/solve.ts';
import type { Api } from './api.ts';
import { delayOf, type Pace, Pause } from './pause.ts';
import { standingOf } from './standing.ts';
import type { Claim, Store } from './store.ts';

export type Progress =
  | { readonly kind: 'idle' }
  /** `solved`, from 0 to 1, while the device solves the pool's challenge. */
  | { readonly kind: 'asking'; readonly trouble: boolean; readonly solved?: number }
  | { readonly kind: 'refused'; readonly code: string; readonly at: number }
  /** The seat is ours; it is not paid yet, or the ledger does not have it yet. */
  | {
      readonly kind: 'held';
      readonly claim: Claim;
      readonly trouble: boolean;
      readonly since: number;
      readonly giveBack: GiveBack;
      readonly payment: Payment;
    }
  /** `isMissing` where the server does not know it, as after a restore: the ledger may, so it is kept. */
  | { readonly kind: 'ticket'; readonly claim: Claim; readonly isMissing: boolean }
  /** Without a seat; money for it may come or go back. */
  | { readonly kind: 'ended'; readonly claim: Claim };

/** `failed`: there was no answer, and the same again can succeed. `refused`: it is a ticket by now, or the organiser has it. */
export type GiveBack = 'asked' | 'failed' | 'refused' | undefined;

/** `asked`: the way to the payment page is asked for, or begun. `failed`: there was no answer. */
export type Payment = 'asked' | 'failed' | undefined;

const ASK_AGAIN: Pace = { firstMs: 400, factor: 2, mostMs: 8_000 };
/** Most claims are tickets after a fraction of a second; in an outage of the ledger thousands look for minutes. */
const LOOK_AGAIN: Pace = { firstMs: 250, factor: 1.5, mostMs: 5_000 };
/** How long the way to another page may take. */
const LEAVING_MS = 15_000;
/** Late money, and money on its way back: it takes what it takes. */
const LOOK_LATE: Pace = { firstMs: 2_000, factor: 1.5, mostMs: 30_000 };
/** The server may open a moment after our idea of its clock. */
const OPENING_GRACE_MS = 3_000;
const OPENING_PAUSE_MS = 250;
const WANTS_SOLUTION: ReadonlySet<string> = new Set(['challenge_required', 'challenge_used']);
/** A solution can be too old or too easy by the time it arrives, not again and again. */
const MAX_SOLVED = 3;
/** Our own word beside the server's: the challenge is of a kind that this page cannot solve. */
export const UNSOLVABLE = 'challenge_unsolvable';

export interface PurchaseOptions {
  readonly pool: string;
  readonly store: Store;
  readonly api: Api;
  readonly now: () => number;
  /** When the pool opens or opened, as far as is known. */
  readonly opensAt: () => number | undefined;
  readonly onChange: (progress: Progress) => void;
  /** Leaves the page for this address. */
  readonly goTo: (url: string) => void;
}

export class Purchase {
  readonly #options: PurchaseOptions;
  readonly #pause = new Pause();
  #progress: Progress = { kind: 'idle' };
  /** One loop at a time; what it finds out of date, it leaves. */
  #run = new AbortController();
  /** The claim that the loop looks at. */
  #followed: string | undefined;

  constructor(options: PurchaseOptions) {
    this.#options = options;
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** Takes up what this browser knows: at the start, and when another tab has changed it. */
  resume(): void {
    const { asked, claim } = this.#options.store.attempt();
    const { kind } = this.#progress;
    if (claim !== null) this.#have(claim);
    else if (kind === 'asking') return;
    else if (asked) void this.#ask();
    else if (kind !== 'refused') this.#finish({ kind: 'idle' });
  }

  /** What is remembered is shown at once, and looked up afterwards. A claim that is on its way is looked up anyway. */
  async check(): Promise<void> {
    const { store, api } = this.#options;
    const { claim, secret } = store.attempt();
    if (claim === null || this.#followed !== undefined) return;
    const answer = await api.getClaim(claim.claim_id, secret);
    if (store.attempt().claim?.claim_id !== claim.claim_id || answer.kind === 'trouble') return;
    if (answer.kind === 'ok') this.#have(answer.value);
    else if (standingOf(claim) === 'ticket') this.#finish({ kind: 'ticket', claim, isMissing: true });
    else this.#letGo();
  }

  /** The person comes back from paying; false where this browser does not know the claim. */
  returnTo(claimId: string): boolean {
    const isKnown = this.#options.store.returnTo(claimId);
    if (isKnown) this.changeBuyer();
    return isKnown;
  }

  /** The person's own wish, for a ticket that the server does not know. */
  forget(): void {
    if (this.#progress.kind !== 'ticket' || !this.#progress.isMissing) return;
    this.#options.store.renew();
    this.#finish({ kind: 'idle' });
  }

  /** The button. A second press while the first is on its way does nothing. */
  buy(quantity: number): void {
    const { kind } = this.#progress;
    if (kind === 'asking' || kind === 'held' || kind === 'ticket') return;
    if (kind === 'ended') this.#options.store.renew();
    this.#options.store.change({ asked: true, quantity });
    void this.#ask();
  }

  /** The way to the payment page. The result shows when the page next asks for the claim, in this tab or another. */
  async pay(): Promise<void> {
    if (this.#progress.kind !== 'held' || this.#progress.payment === 'asked') return;
    const { claim } = this.#progress;
    const { api, store, goTo } = this.#options;
    this.#setPayment('asked');
    const answer = await api.checkout(claim.claim_id, store.attempt().secret);
    if (store.attempt().claim?.claim_id !== claim.claim_id) return;
    if (answer.kind === 'ok') {
      store.change({ sentToPay: true });
      goTo(answer.value.url);
      // A page that is still here was not left: the person has stopped it, or the network has.
      setTimeout(() => this.#setPayment(undefined), LEAVING_MS);
      return;
    }
    // Paid already, or too late: the next look shows which.
    this.#setPayment(answer.kind === 'trouble' ? 'failed' : undefined);
    this.wake();
  }

  /** The person is back on a page that was left for the payment page, as browsers keep it. */
  comeBack(): void {
    this.#setPayment(undefined);
    this.wake();
  }

  #setPayment(payment: Payment): void {
    if (this.#progress.kind === 'held') this.#set({ ...this.#progress, payment });
  }

  /** Gives the seat back. With a worker at it that takes a moment, and the looks at the claim tell. */
  async giveBack(): Promise<void> {
    if (this.#progress.kind !== 'held') return;
    const { claim } = this.#progress;
    const { api, store } = this.#options;
    this.#setGiveBack('asked');
    const answer = await api.release(claim.claim_id, store.attempt().secret);
    if (store.attempt().claim?.claim_id !== claim.claim_id) return;
    if (answer.kind === 'ok') this.#have(answer.value);
    else this.#setGiveBack(answer.kind === 'trouble' ? 'failed' : 'refused');
    this.wake();
  }

  #setGiveBack(giveBack: GiveBack): void {
    if (this.#progress.kind === 'held') this.#set({ ...this.#progress, giveBack });
  }

  /** A person has signed in or out. Each user has attempts of their own, and so has a guest. */
  changeBuyer(): void {
    this.#finish({ kind: 'idle' });
    this.resume();
    void this.check();
  }

  /** The connection or the person is back: do not wait any longer. */
  wake(): void {
    this.#pause.wake();
  }

  async #ask(): Promise<void> {
    const signal = this.#begin();
    const { store, api, pool } = this.#options;
    this.#set({ kind: 'asking', trouble: false });
    let challenge: string | undefined;
    for (let tries = 0, solved = 0; ; tries++) {
      const { request_id, secret, quantity } = store.attempt();
      const user_id = store.buyer();
      const answer = await api.claim(pool, {
        request_id,
        secret,
        ...(quantity > 1 && { quantity }),
        ...(user_id !== undefined && { user_id }),
        ...(challenge !== undefined && { challenge }),
      });
      if (signal.aborted) return;
      if (answer.kind === 'ok') {
        this.#have(answer.value);
        return;
      }
      if (answer.kind === 'refused' && WANTS_SOLUTION.has(answer.code) && solved < MAX_SOLVED) {
        challenge = await this.#solve(signal);
        if (signal.aborted) return;
        solved++;
        continue;
      }
      if (answer.kind === 'refused' && !this.#opensNow(answer.code)) {
        this.#refused(answer.code);
        return;
      }
      if (answer.kind === 'trouble') this.#set({ kind: 'asking', trouble: true });
      const ms = answer.kind === 'trouble' ? delayOf(ASK_AGAIN, tries) : OPENING_PAUSE_MS;
      await this.#pause.wait(Math.max(ms, answer.kind === 'trouble' ? answer.retryAfterMs : 0));
      if (signal.aborted) return;
    }
  }

  /** The solution; undefined where the pool wants none any more, or where this run is over. */
  async #solve(signal: AbortSignal): Promise<string | undefined> {
    const { api, pool } = this.#options;
    for (let tries = 0; ; tries++) {
      this.#set({ kind: 'asking', trouble: tries > 0, solved: 0 });
      const answer = await api.getChallenge(pool);
      if (signal.aborted) return undefined;
      if (answer.kind === 'trouble') {
        await this.#pause.wait(Math.max(delayOf(ASK_AGAIN, tries), answer.retryAfterMs));
        if (signal.aborted) return undefined;
        continue;
      }
      if (answer.kind === 'ok' && answer.value === null) return undefined;
      const given = answer.kind === 'ok' ? answer.value : undefined;
      const onProgress = (solved: number) => this.#set({ kind: 'asking', trouble: false, solved });
      const solution = await solveChallenge(given, { signal, onProgress }).catch(() => undefined);
      if (signal.aborted) return undefined;
      if (solution === undefined) this.#refused(answer.kind === 'refused' ? answer.code : UNSOLVABLE);
      else this.#set({ kind: 'asking', trouble: false });
      return solution;
    }
  }

  #opensNow(code: string): boolean {
    const opensAt = this.#options.opensAt();
    return (
      code === 'closed' && opensAt !== undefined && Math.abs(this.#options.now() - opensAt) < OPENING_GRACE_MS
    );
  }

  #refused(code: string): void {
    const { store, now } = this.#options;
    // The claim of this request was given back: the next press is a new request.
    if (code === 'claim_ended') store.renew();
    else store.change({ asked: false });
    this.#finish({ kind: 'refused', code, at: now() });
  }

  #have(answer: Claim): void {
    // Fields that change each moment are not kept, nor those that are not the claim's.
    const { claim_id, resource_id, user_id, status, claimed_at, hold_until, label, order, ticket_url } =
      answer;
    const claim: Claim = {
      ...{ claim_id, resource_id, user_id, status, claimed_at, hold_until },
      ...(label !== undefined && { label }),
      ...(order?.claims !== undefined && { order }),
      ...(ticket_url !== undefined && { ticket_url }),
    };
    const { sentToPay } = this.#options.store.change({ asked: false, claim });
    const standing = standingOf(claim);
    if (standing === 'ticket') this.#finish({ kind: 'ticket', claim, isMissing: false });
    else if (isSettled(claim, sentToPay)) this.#finish({ kind: 'ended', claim });
    else if (this.#followed !== claim_id) void this.#follow(claim);
  }

  /** Ends the loop before it. */
  #begin(): AbortSignal {
    this.#run.abort();
    this.#run = new AbortController();
    this.#followed = undefined;
    return this.#run.signal;
  }

  #finish(progress: Progress): void {
    this.#begin();
    this.#set(progress);
  }

  async #follow(first: Claim): Promise<void> {
    const signal = this.#begin();
    const { api, now, store } = this.#options;
    const since = now();
    this.#followed = first.claim_id;
    this.#tell(first, since, false);
    for (let tries = 0; ; tries++) {
      const pace = this.#progress.kind === 'ended' ? LOOK_LATE : LOOK_AGAIN;
      // The price is known only after the first look: for a held claim it does not wait.
      await this.#pause.wait(tries === 0 && first.status === 'held' ? 0 : delayOf(pace, tries));
      if (signal.aborted) return;
      const answer = await api.getClaim(first.claim_id, store.attempt().secret);
      if (signal.aborted) return;
      if (answer.kind === 'refused') {
        this.#letGo();
        return;
      }
      if (answer.kind === 'ok') {
        this.#tell(answer.value, since, false);
        this.#have(answer.value);
      } else if ('claim' in this.#progress) this.#tell(this.#progress.claim, since, true);
    }
  }

  /** What the claim that is followed has come to. */
  #tell(claim: Claim, since: number, trouble: boolean): void {
    const standing = standingOf(claim);
    if (standing === 'ended' || standing === 'refund' || standing === 'voided') {
      this.#set({ kind: 'ended', claim });
      return;
    }
    const { giveBack, payment } =
      this.#progress.kind === 'held' ? this.#progress : { giveBack: undefined, payment: undefined };
    this.#set({ kind: 'held', claim, trouble, since, giveBack, payment });
  }

  /**
   * The server says that the claim does not exist. The request keeps its id: if that was a mistake, the next press finds the
   * same seat again and not a second one.
   */
  #letGo(): void {
    this.#options.store.change({ asked: false, claim: null });
    this.#finish({ kind: 'idle' });
  }

  #set(progress: Progress): void {
    this.#progress = progress;
    this.#options.onChange(progress);
  }
}

/** Nothing more comes of it. Where the person was sent to pay, late money may still bring other seats. */
function isSettled(claim: Claim, sentToPay: boolean): boolean {
  const standing = standingOf(claim);
  const { order } = claim;
  if (standing === 'refund') return order?.status === 'refunded';
  if (standing === 'ended') return order?.status !== 'expired' || !sentToPay;
  return standing === 'voided';
}
