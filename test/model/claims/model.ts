// The intake and the ledger as one person would explain them: a few lists in memory, no SQL, no time. It says what each
// call must answer; what it cannot know (which of the free slots, which id) it learns from the answer.

import type {
  Claim,
  ClaimState,
  Delivery,
  Difference,
  Heard,
  Letter,
  Message,
  Pool,
  Slot,
} from './things.ts';

export type * from './things.ts';

const ENDED: ReadonlySet<ClaimState> = new Set(['released', 'expired', 'refused', 'discarded']);
export const hasEnded = (claim: Claim): boolean => ENDED.has(claim.state);

/** No worker that was given the message can have told the ledger. */
const isUntaken = ({ readCt, untriedUpTo, isReplayed }: Message): boolean =>
  !isReplayed && untriedUpTo === readCt;

/** Two workers in a row have not finished it: the next takes it alone. */
const isSuspect = ({ readCt, seen }: Message): boolean => readCt - seen >= 2;

export class Model {
  readonly pools: Pool[] = [];
  readonly slots: Slot[] = [];
  readonly claims: Claim[] = [];
  messages: Message[] = [];
  letters: Letter[] = [];
  deliveries: Delivery[] = [];
  readonly tickets = new Map<Slot, Claim>();
  readonly tombstones = new Set<string>();
  heard: Heard[] = [];
  readonly audit: string[] = [];
  /** True from a crash until a function reads the cache and rebuilds it; until then its rows cannot be changed by hand. */
  isCacheLost = false;

  liveClaim(slot: Slot): Claim | undefined {
    return this.claims.find((claim) => claim.slot === slot && !hasEnded(claim));
  }

  freeSlots(pool: Pool): Slot[] {
    return this.slots.filter((slot) => slot.pool === pool && this.statusOf(slot) === 'AVAILABLE');
  }

  statusOf(slot: Slot): 'AVAILABLE' | 'RESERVED' | 'CONSUMED' {
    const claim = this.liveClaim(slot);
    if (claim !== undefined) return claim.state === 'committed' ? 'CONSUMED' : 'RESERVED';
    return slot.isOrphan ? 'RESERVED' : 'AVAILABLE';
  }

  /** The claim of this request: an id is its user's own. */
  claimOf({ pool, user, request }: { pool: Pool; user: string; request: string | null }): Claim | undefined {
    if (request === null) return undefined;
    return this.claims.find(
      (claim) => claim.slot.pool === pool && claim.user === user && claim.request === request,
    );
  }

  isAtLimit(pool: Pool, user: string): boolean {
    const held = this.claims.filter(
      (claim) => claim.slot.pool === pool && claim.user === user && !hasEnded(claim),
    );
    return pool.maxPerUser !== null && held.length >= pool.maxPerUser;
  }

  /** Why a claim without a known request is refused; empty where it must succeed. Where two hold, either may be said. */
  refusals(pool: Pool, user: string): string[] {
    if (!pool.isOpen) return ['closed'];
    const reasons: string[] = [];
    if (this.freeSlots(pool).length === 0) reasons.push('sold_out');
    if (this.isAtLimit(pool, user)) reasons.push('limit');
    return reasons;
  }

  claim(slot: Slot, user: string, request: string | null, ids: { claimId: string; msgId: number }): Claim {
    const hold = slot.pool.hasHold ? 'running' : 'none';
    const name = `c${this.claims.length + 1}`;
    const claim: Claim = {
      id: ids.claimId,
      name,
      slot,
      user,
      request,
      state: 'queued',
      hold,
      endAs: null,
      msgId: ids.msgId,
    };
    this.claims.push(claim);
    this.#enqueue(claim, ids.msgId, false);
    return claim;
  }

  #enqueue(claim: Claim, msgId: number, isReplayed: boolean): void {
    claim.msgId = msgId;
    const fresh = { readCt: 0, seen: 0, tried: 0, isVisible: true, untriedUpTo: 0 };
    this.messages.push({ id: msgId, claim, ...fresh, isReplayed });
  }

  messageOf(claim: Claim): Message | undefined {
    return this.messages.find((message) => message.claim === claim);
  }

  /** The claim gives its slot back. */
  end(claim: Claim, state: 'released' | 'expired' | 'refused' | 'discarded'): void {
    this.messages = this.messages.filter((message) => message.claim !== claim);
    claim.state = claim.endAs ?? state;
    claim.endAs = null;
    claim.msgId = null;
  }

  /** A worker may have the message, so the claim ends once the ledger knows. */
  beginEnd(claim: Claim, state: 'released' | 'expired' | 'discarded'): void {
    claim.endAs ??= state;
  }

  /** What public.void_tickets must answer. */
  voidTicket(claim: Claim): Heard {
    if (this.ledgerAnswer(claim) === 'already') return { claim, outcome: 'ticket' };
    this.tombstones.add(claim.id);
    return { claim, outcome: 'voided' };
  }

  /** The claims that end now; an earlier call has ended or committed the others. */
  finishEnds(ends: readonly Heard[]): Heard[] {
    const open = ends.filter(({ claim }) => claim.endAs !== null);
    for (const { claim, outcome } of open) {
      this.dropLetterOf(claim);
      this.messages = this.messages.filter((message) => message.claim !== claim);
      if (outcome === 'ticket') this.commit(claim);
      else this.end(claim, 'released');
    }
    return open;
  }

  releaseAnswer(claim: Claim, user: string | null): string {
    if (user !== null && user !== claim.user) return 'SL006';
    if (claim.state === 'committed') return 'SL010';
    if (claim.endAs !== null) return 'ending';
    if (claim.state === 'dead_letter') return 'SL013';
    if (hasEnded(claim)) return claim.state;
    return this.isUntaken(claim) ? 'released' : 'ending';
  }

  isUntaken(claim: Claim): boolean {
    const message = this.messageOf(claim);
    return claim.state === 'queued' && message !== undefined && isUntaken(message);
  }

  dueHolds(): Claim[] {
    return this.claims.filter(
      ({ hold, state, endAs }) =>
        hold === 'over' && endAs === null && (state === 'queued' || state === 'dead_letter'),
    );
  }

  expire(claim: Claim): void {
    const letter = this.letters.find(({ id }) => claim.state === 'dead_letter' && id === claim.msgId);
    if (this.isUntaken(claim)) this.end(claim, 'expired');
    else if (letter !== undefined && this.discardAnswer(letter) === 'ticket_conflict') claim.hold = 'none';
    else this.beginEnd(claim, 'expired');
  }

  /** Takes what bridge_take must give: of each lane the oldest that are not suspects. */
  take(worker: string, limit: number, paused: readonly Pool[]): Delivery[] {
    const lanes = this.pools.filter((pool) => !paused.includes(pool));
    return lanes
      .flatMap((pool) =>
        this.messages
          .filter((message) => message.isVisible && message.claim.slot.pool === pool && !isSuspect(message))
          .sort((one, other) => one.id - other.id)
          .slice(0, limit),
      )
      .sort((one, other) => one.id - other.id)
      .map((message) => this.deliver(worker, message));
  }

  /** Of these bridge_take_suspect must give one; which of them is the oldest only the database knows. */
  suspects(): Message[] {
    return this.messages.filter((message) => message.isVisible && isSuspect(message));
  }

  deliver(worker: string, message: Message): Delivery {
    const takeovers = message.readCt - message.seen;
    message.readCt++;
    message.isVisible = false;
    const isValidated = !message.claim.slot.pool.validates || message.claim.state === 'validated';
    const counts = { readCt: message.readCt, attempts: message.tried + 1, takeovers };
    const delivery = { worker, message, ...counts, isValidated, answer: null };
    this.deliveries.push(delivery);
    return delivery;
  }

  holds({ message, readCt }: Delivery): boolean {
    return this.messages.includes(message) && message.readCt === readCt;
  }

  isSpent({ attempts, message }: Delivery): boolean {
    return attempts >= message.claim.slot.pool.maxRetries;
  }

  ledgerAnswer({ slot, ...claim }: Claim): 'already' | 'conflict' | undefined {
    const ticket = this.tickets.get(slot);
    if (ticket === undefined) return undefined;
    return ticket.id === claim.id ? 'already' : 'conflict';
  }

  /** What a sale at the ledger itself must be answered; it is a ticket without a claim in the intake. */
  sellAtLedger(slot: Slot, user: string): 'done' | 'SL020' {
    const ticket = this.tickets.get(slot);
    if (ticket !== undefined) return ticket.user === user ? 'done' : 'SL020';
    const name = `${user}'s`;
    const sale = {
      id: slot.id,
      name,
      slot,
      user,
      request: null,
      hold: 'none',
      endAs: null,
      msgId: null,
    } as const;
    this.tickets.set(slot, { ...sale, state: 'committed' });
    return 'done';
  }

  forget(deliveries: readonly Delivery[]): void {
    this.deliveries = this.deliveries.filter((delivery) => !deliveries.includes(delivery));
  }

  /** What a verdict changes, where the lease is still held. A dead letter's id is learned. */
  finish(
    delivery: Delivery,
    verdict: string,
    reason: string | null,
    delayMs: number,
    deadLetterId?: number,
  ): void {
    const { message } = delivery;
    const { claim } = message;
    const leave = () => {
      this.messages = this.messages.filter((other) => other !== message);
    };
    if (verdict === 'gone') {
      leave();
    } else if (verdict === 'committed') {
      leave();
      this.commit(claim);
    } else if (verdict === 'refused') {
      this.end(claim, 'refused');
      this.freeByHand(claim.slot);
    } else if (verdict === 'dead_letter') {
      leave();
      this.letters.push({
        id: deadLetterId ?? 0,
        claim,
        reason: reason ?? 'max_retries',
        readCt: delivery.readCt,
        isValidated: claim.state === 'validated',
      });
      claim.state = 'dead_letter';
      claim.msgId = deadLetterId ?? null;
    } else if (verdict === 'validated') {
      if (claim.state === 'queued') Object.assign(claim, { state: 'validated', hold: 'none' });
    } else {
      message.isVisible = delayMs === 0;
      const isFirstTry = message.untriedUpTo >= message.readCt - 1;
      message.untriedUpTo = verdict === 'untried' && isFirstTry ? message.readCt : -1;
      message.seen = message.readCt;
      if (verdict === 'retry') message.tried++;
    }
  }

  commit(claim: Claim): void {
    // A ticket that was written past the intake has no claim until reconcile makes one.
    if (!this.claims.includes(claim)) this.claims.push(claim);
    Object.assign(claim, { state: 'committed', msgId: null, hold: 'none', endAs: null });
    claim.slot.isOrphan = false;
  }

  /** A slot without a message or a dead letter goes back on sale. */
  freeByHand(slot: Slot): void {
    if (!this.isNamed(slot)) slot.isOrphan = false;
  }

  isNamed(slot: Slot): boolean {
    return [...this.messages, ...this.letters].some(({ claim }) => claim.slot === slot);
  }

  /** What a replay must answer; `anew`: the old claim has ended, so it is a claim like any other. */
  replayAnswer({ id, claim }: Letter): string {
    if (claim.endAs !== null) return 'claim_is_ending';
    if (claim.state === 'dead_letter' && claim.msgId === id) return 'replayed';
    return hasEnded(claim) ? 'anew' : `claim_is_${claim.state}`;
  }

  replay(letter: Letter, msgId: number): void {
    this.dropLetter(letter);
    letter.claim.state = letter.isValidated ? 'validated' : 'queued';
    letter.claim.hold = 'none';
    this.#enqueue(letter.claim, msgId, true);
  }

  /** The letter that the claim waits with, if it does. */
  dropLetterOf({ state, msgId }: Claim): void {
    if (state === 'dead_letter') this.letters = this.letters.filter(({ id }) => id !== msgId);
  }

  dropLetter(letter: Letter): void {
    this.letters = this.letters.filter((other) => other !== letter);
  }

  /** A slot that the ledger has sold to another must not go back on sale with its dead letter. */
  discardAnswer({ id, claim, reason }: Letter): 'discarded' | 'ending' | 'ticket_conflict' {
    const live = this.liveClaim(claim.slot);
    const isSettled = live !== undefined && (live.state === 'committed' || live !== claim);
    if (reason.startsWith('ticket_conflict') && !isSettled) return 'ticket_conflict';
    return claim.state === 'dead_letter' && claim.msgId === id ? 'ending' : 'discarded';
  }

  discard(letter: Letter): void {
    const { claim } = letter;
    if (this.discardAnswer(letter) === 'ending') {
      this.beginEnd(claim, 'discarded');
      return;
    }
    this.dropLetter(letter);
    this.freeByHand(claim.slot);
  }

  /** What a comparison of both databases must find. */
  differences(): Difference[] {
    return this.slots.flatMap((slot): Difference[] => {
      const ticket = this.tickets.get(slot);
      const live = this.liveClaim(slot);
      if (ticket === undefined) {
        const isWrong = live === undefined && slot.isOrphan;
        return isWrong ? [{ kind: 'slot_status', slot }] : [];
      }
      if (live === undefined)
        return [{ kind: slot.isOrphan ? 'ticket_without_claim' : 'ticket_on_sale', slot }];
      if (live !== ticket) return [{ kind: 'ticket_of_another_claim', slot }];
      return live.state === 'dead_letter' ? [{ kind: 'ticket_without_claim', slot }] : [];
    });
  }

  /** Repairs it, if an operator's command may. */
  fix({ kind, slot }: Difference): 'fixed' | 'unchanged' {
    const ticket = this.tickets.get(slot);
    const live = this.liveClaim(slot);
    if (ticket === undefined) {
      if (this.isNamed(slot)) return 'unchanged';
      slot.isOrphan = false;
    } else {
      if (hasEnded(ticket)) return 'unchanged';
      if (kind === 'ticket_of_another_claim') {
        if (live?.state !== 'dead_letter') return 'unchanged';
        live.endAs = null;
        this.end(live, 'discarded');
      }
      this.dropLetterOf(ticket);
      this.commit(ticket);
    }
    this.audit.push('reconcile_fix');
    return 'fixed';
  }

  /** The cache is gone; what comes back knows nothing of what was written into it by hand. */
  loseCache(): void {
    this.isCacheLost = true;
    for (const slot of this.slots) slot.isOrphan = false;
  }
}
