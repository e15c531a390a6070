// The promises of DESIGN §6 about claims, over what both databases hold when everything has come to rest. They know
// nothing of the model: only what buyers were told, what operators did, and how the pools were set up.

import { ensure, ensureSame, type PromiseName, Violation } from '../violation.ts';
import type { Model } from './model.ts';
import { hasEnded } from './model.ts';
import type { IntakeState, TicketState, Told } from './world.ts';

export type Rest = {
  intake: IntakeState;
  tickets: TicketState[];
  told: readonly Told[];
  released: ReadonlySet<string>;
  /** Deliveries that were finished as failed, by message. */
  failures: ReadonlyMap<number, number>;
  /** Actions that operators made. */
  actions: readonly string[];
  pools: readonly { id: string; capacity: number; maxRetries: number }[];
};

type Checker = (rest: Rest) => string[];

const live = ({ intake }: Rest) => intake.claims.filter(({ isFreed }) => !isFreed);

export const PROMISES: Partial<Record<PromiseName, Checker>> = {
  I1: ({ told, intake }) =>
    told
      .filter(
        ({ claimId, slotId, user }) =>
          !intake.claims.some(
            ({ id, slot, user: owner }) => id === claimId && slot === slotId && owner === user,
          ),
      )
      .map(({ claimId }) => `the acknowledged claim ${claimId} is lost`),

  I2: (rest) => [
    ...twice(live(rest).map(({ slot }) => slot)).map((slot) => `slot ${slot} has two live claims`),
    ...twice(rest.tickets.map(({ slot }) => slot)).map((slot) => `slot ${slot} has two tickets`),
  ],

  I3: (rest) => {
    const owners = (rows: { slot: string; claim: string; user: string }[]) =>
      rows.map(({ slot, claim, user }) => `${slot} ${claim} ${user}`);
    const sold = owners(
      live(rest)
        .filter(({ state }) => state === 'committed')
        .map(({ id, slot, user }) => ({ slot, claim: id, user })),
    );
    const written = owners(rest.tickets);
    return [
      ...sold.filter((line) => !written.includes(line)).map((line) => `${line} is sold in the intake only`),
      ...written.filter((line) => !sold.includes(line)).map((line) => `${line} is sold in the ledger only`),
    ];
  },

  I4: (rest) =>
    rest.pools.flatMap(({ id, capacity }) => {
      const held = live(rest).filter(({ pool }) => pool === id).length;
      const sold = rest.tickets.filter(({ pool }) => pool === id).length;
      return Math.max(held, sold) > capacity ? [`${held} held and ${sold} sold of ${capacity} in ${id}`] : [];
    }),

  I5: (rest) => {
    const claims = new Map(live(rest).map(({ slot, state }) => [slot, state]));
    const capacity = rest.pools.reduce((sum, pool) => sum + pool.capacity, 0);
    const { slots, totals } = rest.intake;
    const counted = totals.reduce((sum, total) => sum + total.slots, 0);
    const wrong = slots.filter(({ id, status }) => {
      const state = claims.get(id);
      return status !== (state === undefined ? 'AVAILABLE' : state === 'committed' ? 'CONSUMED' : 'RESERVED');
    });
    return [
      ...(slots.length === capacity ? [] : [`${slots.length} slots instead of ${capacity}`]),
      ...(counted === capacity ? [] : [`a capacity of ${counted} instead of ${capacity}`]),
      ...wrong.map(({ id, status }) => `slot ${id} is ${status}, its claim ${claims.get(id)}`),
    ];
  },

  I6: ({ intake, tickets, released }) =>
    intake.claims.flatMap(({ id, state, isFreed, msgId }) => {
      if (released.has(id) && state !== 'released') return [`claim ${id} was released and is ${state}`];
      const ends = [
        ...(tickets.some(({ claim }) => claim === id) ? ['ticket'] : []),
        ...(isFreed ? ['freed'] : []),
        ...(intake.letters.some(
          (letter) => letter.id === msgId && letter.claim === id && state === 'dead_letter',
        )
          ? ['dead letter']
          : []),
      ];
      return ends.length === 1
        ? []
        : [`claim ${id} is ${state} and ended as ${ends.join(' and ') || 'nothing'}`];
    }),

  I10: ({ intake }) => intake.messages.map(({ id, claim }) => `message ${id} of ${claim} is still there`),

  I11: ({ intake, actions }) => {
    const told = intake.audit.toSorted().join(' ');
    const made = actions.toSorted().join(' ');
    return told === made ? [] : [`the audit says "${told}", operators did "${made}"`];
  },

  I12: ({ intake, failures, pools }) =>
    intake.letters.flatMap(({ reason, msgId, claim }) => {
      const pool = intake.claims.find(({ id }) => id === claim)?.pool;
      const allowed = pools.find(({ id }) => id === pool)?.maxRetries ?? 0;
      const failed = failures.get(msgId) ?? 0;
      if (!reason.startsWith('max_retries') || failed + 1 >= allowed) return [];
      return [`${claim} died after ${failed} failures, and ${allowed - 1} are allowed`];
    }),
};

export function checkPromises(rest: Rest): void {
  for (const [name, check] of Object.entries(PROMISES)) {
    const [first] = check(rest);
    if (first !== undefined) throw new Violation(name as PromiseName, first);
  }
}

function twice(items: readonly string[]): string[] {
  return items.filter((item, at) => items.indexOf(item) < at);
}

/** The databases hold exactly what the model holds; each kind of row belongs to a promise. */
export function compareStates(
  model: Model,
  { intake, tickets, tombstones }: Pick<Rest, 'intake' | 'tickets'> & { tombstones: readonly string[] },
): void {
  ensureSame('I6', tombstones, [...model.tombstones]);
  ensureSame(
    'I3',
    tickets.map(({ slot, claim, user }) => `ticket ${slot} ${claim} ${user}`),
    [...model.tickets.values()].map(({ slot, id, user }) => `ticket ${slot.id} ${id} ${user}`),
  );
  ensureSame(
    'I6',
    intake.claims.map(
      ({ id, slot, user, request, state, msgId, hold, isFreed, endAs }) =>
        `claim ${id} ${slot} ${user} ${request} ${state} ${msgId} ${isFreed || hold} ${endAs}`,
    ),
    model.claims.map(
      (claim) =>
        `claim ${claim.id} ${claim.slot.id} ${claim.user} ${claim.request} ${claim.state} ${claim.msgId} ` +
        `${hasEnded(claim) || claim.hold} ${claim.endAs}`,
    ),
  );
  ensureSame(
    'I5',
    intake.slots.map(({ id, status }) => `slot ${id} ${status}`),
    model.slots.map((slot) => `slot ${slot.id} ${model.statusOf(slot)}`),
  );
  ensureSame(
    'I9',
    intake.messages.map(
      ({ id, claim, readCt, seen, tried, isVisible }) =>
        `message ${id} ${claim} ${readCt} ${seen} ${tried} ${isVisible}`,
    ),
    model.messages.map(
      ({ id, claim, readCt, seen, tried, isVisible }) =>
        `message ${id} ${claim.id} ${readCt} ${seen} ${tried} ${isVisible}`,
    ),
  );
  ensureSame(
    'I6',
    intake.letters.map(({ id, claim, reason, readCt }) => `letter ${id} ${claim} ${reason} ${readCt}`),
    model.letters.map(({ id, claim, reason, readCt }) => `letter ${id} ${claim.id} ${reason} ${readCt}`),
  );
  ensureSame('I11', intake.audit, model.audit);
  ensure(intake.totals.length <= model.pools.length, 'I5', () => 'there are more pools than were made');
}
