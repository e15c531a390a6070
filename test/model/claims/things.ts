// What the model keeps in its lists.

export type ClaimState =
  | 'queued'
  | 'validated'
  | 'committed'
  | 'dead_letter'
  | 'released'
  | 'expired'
  | 'refused'
  | 'discarded';

export type PoolRules = {
  slots: number;
  maxPerUser: number | null;
  hasHold: boolean;
  validates: boolean;
  maxRetries: number;
};

export type Pool = PoolRules & { id: string; isOpen: boolean };
/** isOrphan: RESERVED by hand, without a claim. */
export type Slot = { id: string; name: string; pool: Pool; isOrphan: boolean };
export type Claim = {
  id: string;
  name: string;
  slot: Slot;
  user: string;
  request: string | null;
  state: ClaimState;
  hold: 'none' | 'running' | 'over';
  /** How it will end once the ledger knows. */
  endAs: 'released' | 'expired' | 'discarded' | null;
  /** Of its message, or of its dead letter. */
  msgId: number | null;
};
export type Message = {
  id: number;
  claim: Claim;
  readCt: number;
  /** The last delivery that a worker finished, and how many have failed. */
  seen: number;
  tried: number;
  isVisible: boolean;
  /** Up to this delivery every worker has handed it back untried. */
  untriedUpTo: number;
  /** Its claim had another message before. */
  isReplayed: boolean;
};
/** isValidated: its target may have it, so the validation hook is not asked again. */
export type Letter = { id: number; claim: Claim; reason: string; readCt: number; isValidated: boolean };
export type LedgerAnswer = 'committed' | 'already' | 'conflict' | 'voided' | 'none';
/** What the ledger said about a claim that is to end, before the intake is told. */
export type Heard = { claim: Claim; outcome: 'voided' | 'ticket' };
/** A message in the hands of a worker, who may be slower than its lease. */
export type Delivery = {
  worker: string;
  message: Message;
  readCt: number;
  attempts: number;
  takeovers: number;
  isValidated: boolean;
  /** What the ledger said, if it was asked. */
  answer: LedgerAnswer | null;
};
export type Difference = { kind: string; slot: Slot };
