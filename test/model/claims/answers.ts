// What the real intake and ledger are asked and answer.

import type { Delivery, Pool } from './things.ts';

export type ClaimAnswer = { outcome: string; claimId: string | null; slotId: string | null };
export type Request = { pool: Pool; user: string; request: string | null };
export type Finish = { delivery: Delivery; verdict: string; reason: string | null; delayMs: number };
export type Taken = {
  id: number;
  readCt: number;
  attempts: number;
  takeovers: number;
  claim: string;
  state: string;
};
export type Told = { claimId: string; slotId: string; user: string };

export type IntakeState = {
  slots: { id: string; status: string }[];
  totals: { pool: string; slots: number }[];
  claims: {
    id: string;
    slot: string;
    pool: string;
    user: string;
    request: string | null;
    state: string;
    msgId: number | null;
    hold: string;
    isFreed: boolean;
    endAs: string | null;
  }[];
  messages: {
    id: number;
    claim: string;
    slot: string;
    readCt: number;
    seen: number;
    tried: number;
    state: string;
    isVisible: boolean;
  }[];
  /** msgId: of the message it was. */
  letters: { id: number; claim: string; slot: string; reason: string; readCt: number; msgId: number }[];
  audit: string[];
};
export type TicketState = { slot: string; claim: string; user: string; pool: string };
