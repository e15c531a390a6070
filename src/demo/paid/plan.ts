// Who the buyers are: how many seats each wants, and what each does with the money. The same for the same number of buyers.

/**
 * pays: within the hold. leaves: opens the checkout and lets the hold run out. late: pays by a method that takes longer than the
 * hold. twice: pays a second session that a link of the seller's made. refunded: pays, and the seller refunds it at Stripe.
 */
export type Way = 'pays' | 'leaves' | 'late' | 'twice' | 'refunded';

export interface PlannedBuyer {
  readonly number: number;
  readonly way: Way;
  readonly seats: number;
}

/** Of twenty buyers. The first of all is refunded. */
const WAYS: readonly Way[] = [
  ...Array<Way>(12).fill('pays'),
  ...Array<Way>(4).fill('leaves'),
  ...Array<Way>(3).fill('late'),
  'twice',
];
const MOST_SEATS = 4;
/** Has no factor in common with the number of ways, so that neighbours differ. */
const STEP = 7;

export function planBuyers(buyers: number): PlannedBuyer[] {
  return Array.from({ length: buyers }, (_, number) => ({
    number,
    way: number === 0 ? 'refunded' : (WAYS[(number * STEP) % WAYS.length] ?? 'pays'),
    seats: 1 + (number % MOST_SEATS),
  }));
}
