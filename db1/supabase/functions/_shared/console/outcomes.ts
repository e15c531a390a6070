// What an operator's action says of each id it was asked for, dead letters and events alike.

/** Whatever else is said is the reason why nothing was done. */
const DONE: ReadonlySet<string> = new Set([
  'replayed',
  'claimed',
  'discarded',
  'ending',
  'voiding',
  'skipped',
  'would_replay',
  'would_discard',
  'would_void',
  'would_skip',
  'would_send',
  'due',
  'void_requested',
  'voided',
  'released',
  'resolved',
  'would_resolve',
]);

export const isDone = ({ outcome }: { readonly outcome: string }): boolean => DONE.has(outcome);
