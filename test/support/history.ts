// What buyers were told, what the database holds afterwards, and the promises that tie the two together. Each checker
// is a pure function that returns what is wrong, so that any run (tests, chaos) can be judged by the same rules.

/** An answer that reached a buyer. No slot: "sold out". */
export type Told = {
  requestId: string;
  slotId: string | null;
  /** How many distinct requests had been started, by anybody, when this answer came. */
  startedByThen: number;
};

export type ClaimRow = { claimId: string; requestId: string; slotId: string; live: boolean };
export type SlotRow = { slotId: string; status: 'AVAILABLE' | 'RESERVED' | 'CONSUMED' };

/** A run in which nothing was released: what is sold stays sold. */
export type History = {
  capacity: number;
  told: Told[];
  claims: ClaimRow[];
  slots: SlotRow[];
  /** The claim of each message on the queue. */
  queued: string[];
};

export type Checker = (history: History) => string[];

/** I1: a claim that was acknowledged is there, once, with the slot that was named. */
const acknowledgedClaimsAreKept: Checker = ({ told, claims }) => {
  const byRequest = groupBy(claims, (claim) => claim.requestId);
  return told.flatMap(({ requestId, slotId }) => {
    if (slotId === null) return [];
    const kept = byRequest.get(requestId) ?? [];
    if (kept.length !== 1) return [`request ${requestId} was acknowledged and has ${kept.length} claims`];
    if (kept[0]?.slotId !== slotId)
      return [`request ${requestId} was told ${slotId} and has ${kept[0]?.slotId}`];
    return [];
  });
};

/** I2: no slot has two live owners, neither in the database nor in what buyers were told. */
const noSlotIsSoldTwice: Checker = ({ told, claims }) => {
  const live = claims.filter((claim) => claim.live);
  const inDatabase = [...groupBy(live, (claim) => claim.slotId)]
    .filter(([, owners]) => owners.length > 1)
    .map(([slotId, owners]) => `slot ${slotId} has ${owners.length} live claims`);
  const sold = told.filter((answer) => answer.slotId !== null);
  const inAnswers = [...groupBy(sold, (answer) => answer.slotId)]
    .map(([slotId, answers]) => ({ slotId, buyers: new Set(answers.map((answer) => answer.requestId)).size }))
    .filter(({ buyers }) => buyers > 1)
    .map(({ slotId, buyers }) => `slot ${slotId} was promised to ${buyers} requests`);
  return [...inDatabase, ...inAnswers];
};

/** Each request takes at most one slot: with fewer other requests started than there are slots, some were left. */
const soldOutIsNeverALie: Checker = ({ told, capacity }) =>
  told
    .filter((answer) => answer.slotId === null && answer.startedByThen - 1 < capacity)
    .map(
      ({ requestId, startedByThen }) =>
        `request ${requestId} was told "sold out" though only ${startedByThen} requests had been made for ${capacity} slots`,
    );

/** I4, I5: every slot is there, free or held by exactly one live claim. */
const slotsAreConserved: Checker = ({ capacity, claims, slots }) => {
  const held = new Set(claims.filter((claim) => claim.live).map((claim) => claim.slotId));
  const free = slots.filter((slot) => slot.status === 'AVAILABLE');
  const problems = free
    .filter(({ slotId }) => held.has(slotId))
    .map(({ slotId }) => `slot ${slotId} is for sale and has a live claim`);
  if (held.size + free.length !== capacity)
    problems.push(`${held.size} held and ${free.length} free slots do not make ${capacity}`);
  if (slots.length !== capacity) problems.push(`there are ${slots.length} slots instead of ${capacity}`);
  return problems;
};

/** Every live claim is on its way, once. */
const oneMessagePerLiveClaim: Checker = ({ claims, queued }) => {
  const messages = groupBy(queued, (claimId) => claimId);
  const live = new Set(claims.filter((claim) => claim.live).map((claim) => claim.claimId));
  return [
    ...[...live]
      .filter((claimId) => messages.get(claimId)?.length !== 1)
      .map((claimId) => `claim ${claimId} has ${messages.get(claimId)?.length ?? 0} messages`),
    ...[...messages.keys()]
      .filter((claimId) => !live.has(claimId))
      .map((claimId) => `a message is about ${claimId}, which is no live claim`),
  ];
};

export const CHECKERS = {
  acknowledgedClaimsAreKept,
  noSlotIsSoldTwice,
  soldOutIsNeverALie,
  slotsAreConserved,
  oneMessagePerLiveClaim,
} satisfies Record<string, Checker>;

/** What is wrong, by the name of the promise that is broken. Empty for a run that kept them all. */
export function brokenPromises(history: History): Partial<Record<keyof typeof CHECKERS, string[]>> {
  const found = Object.entries(CHECKERS).map(([name, check]) => [name, check(history)] as const);
  return Object.fromEntries(found.filter(([, problems]) => problems.length > 0));
}

function groupBy<Item, Key>(items: Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
