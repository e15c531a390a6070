// What a demo has seen so far. One object that the parts write to and the progress reads from.

import type { Claim } from '#client/index.ts';

export interface Tally {
  /** Buyers who have their answer. */
  answered: number;
  readonly claims: Claim[];
  soldOut: number;
  pressedTwice: number;
  /** Requests that got no answer, or one that says to come back. */
  triedAgain: number;
  tickets: number;
  /** Tickets of people who are not of the crowd. */
  others: number;
  /** False while the ledger does not answer us; watchLedger alone says so. */
  ledgerAnswers: boolean;
  /** When the ledger was started, as it told us last, by its own clock. */
  ledgerStartedAtMs: number;
  /** Since when the server has not answered the crowd; undefined while it does. */
  serverSilentSince: number | undefined;
  /** Payments whose event was taken, and how often events were delivered for that. */
  paid: number;
  deliveries: number;
  /** Undefined where payments are left out; then `noPayments` says why. */
  effects: number | undefined;
  noPayments: string | undefined;
  /** Why an outage that was asked for was not made. */
  noOutage: string | undefined;
  /** What should not have happened. */
  readonly problems: string[];
}

export function newTally(): Tally {
  return {
    answered: 0,
    claims: [],
    soldOut: 0,
    pressedTwice: 0,
    triedAgain: 0,
    tickets: 0,
    others: 0,
    ledgerAnswers: true,
    ledgerStartedAtMs: 0,
    serverSilentSince: undefined,
    paid: 0,
    deliveries: 0,
    effects: undefined,
    noPayments: undefined,
    noOutage: undefined,
    problems: [],
  };
}

/** Kept short: thousands of buyers can meet the same trouble. */
const MAX_PROBLEMS = 10;

export function note(tally: Tally, problem: string): void {
  if (tally.problems.length < MAX_PROBLEMS) tally.problems.push(problem);
}
