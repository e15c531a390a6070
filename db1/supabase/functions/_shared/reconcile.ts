// Compares the intake with the ledger, slot by slot. Both move while they are read, so what looks wrong is looked at again,
// and only what is still wrong in the same way is a difference.

/** A row of public.reconcile_claims. */
export interface SlotRow {
  readonly slot_id: string;
  readonly pool_id: string;
  /** Null for a slot that was taken out of the inventory while a claim held it. */
  readonly slot_status: string | null;
  readonly claim_id: string | null;
  readonly user_id: string | null;
  readonly claim_state: string | null;
  /** On the queue or in the dead letters, as the claim's state says. */
  readonly has_message: boolean;
  /** False for pools that commit elsewhere. */
  readonly expects_ticket: boolean;
  readonly held_by_hand: boolean;
}

/** A row of public.tickets_page. */
export interface TicketRow {
  readonly slot_id: string;
  readonly pool_id: string;
  readonly user_id: string;
  readonly claim_id: string;
  readonly verified: boolean;
}

/** A row of public.reconcile_messages. */
export interface EndedMessageRow {
  readonly msg_id: number;
  readonly slot_id: string;
  readonly pool_id: string;
  readonly claim_id: string;
  readonly claim_state: string;
}

export type DifferenceKind =
  | 'ticket_without_claim'
  | 'ticket_of_another_claim'
  | 'ticket_on_sale'
  | 'claim_without_ticket'
  | 'claim_without_message'
  | 'message_of_ended_claim'
  | 'slot_status'
  | 'void_unfinished'
  | 'payment_unsettled';

export interface Difference {
  readonly kind: DifferenceKind;
  /** Null where it is about a payment. */
  readonly slot_id: string | null;
  readonly pool_id: string;
  readonly detail: string;
  /** What the ledger says of the slot; of a void the claim alone. */
  readonly ticket: (Pick<TicketRow, 'claim_id'> & Partial<Pick<TicketRow, 'user_id' | 'verified'>>) | null;
  /** `tenant/payment`, where it is about one. */
  readonly payment_key?: string;
  /** What the courier carries again for it. */
  readonly outbox_id?: string;
  /** What the payment bought, as the ledger knows it. */
  readonly claim_ids?: readonly string[];
}

/** As the comparison slot by slot finds it. */
export type SlotDifference = Difference & { readonly slot_id: string };

export type EndedMessages = (after: number, limit: number) => Promise<EndedMessageRow[]>;

export interface ReconcilePorts {
  slots(after: string | null, limit: number): Promise<SlotRow[]>;
  tickets(after: string | null, limit: number): Promise<TicketRow[]>;
  slotsById(slotIds: string[]): Promise<SlotRow[]>;
  ticketsById(slotIds: string[]): Promise<TicketRow[]>;
  /** One for each intake: each counts its messages by itself. */
  readonly endedMessages: readonly EndedMessages[];
  /** Those of the claims that are void in the ledger. */
  voided(claimIds: string[]): Promise<VoidedRow[]>;
  /** How many slots have been compared so far. */
  onProgress(compared: number): void;
}

/** A row of public.voided_claims. */
export interface VoidedRow {
  readonly claim_id: string;
  /** What asked for it; null where the intake ended the claim by itself, and goes on with that. */
  readonly outbox_id: string | null;
  /** The courier still has to tell the intake. */
  readonly is_underway: boolean;
}

export const PAGE_ROWS = 1_000;

/** What is wrong with one slot, given what both sides say about it. Pure. */
export function compareSlot(slot: SlotRow | undefined, ticket: TicketRow | undefined): SlotDifference[] {
  if (slot === undefined) {
    return ticket === undefined
      ? []
      : [difference('ticket_without_claim', ticket, ticket, 'the intake has no such slot')];
  }
  const ofTicket = ticket === undefined ? undefined : compareTicket(slot, ticket);
  // The repair of the claim puts the slot right, too.
  if (ofTicket !== undefined) return [ofTicket];
  const found: SlotDifference[] = [];
  const { claim_state, slot_status } = slot;
  if (claim_state === 'committed' && ticket === undefined && slot.expects_ticket)
    found.push(difference('claim_without_ticket', slot, ticket, `claim ${slot.claim_id} is committed`));
  if (claim_state !== null && claim_state !== 'committed' && !slot.has_message && ticket === undefined)
    found.push(difference('claim_without_message', slot, ticket, `claim ${slot.claim_id} is ${claim_state}`));
  const expected = statusOf(slot);
  if (slot_status !== null && slot_status !== expected)
    found.push(difference('slot_status', slot, ticket, `${slot_status} instead of ${expected}`));
  return found;
}

function compareTicket(slot: SlotRow, ticket: TicketRow): SlotDifference | undefined {
  const { claim_id, user_id, claim_state, slot_status } = slot;
  if (claim_id === null) {
    return slot_status === 'AVAILABLE'
      ? difference('ticket_on_sale', slot, ticket, 'sold in the ledger, on sale in the intake')
      : difference('ticket_without_claim', slot, ticket, `no live claim, and the slot is ${slot_status}`);
  }
  // A ticket that names no claim has its slot's id there: a pool's own commit function may write such.
  const isOfClaim = claim_id === ticket.claim_id || ticket.claim_id === ticket.slot_id;
  if (!isOfClaim || user_id !== ticket.user_id) {
    const detail = `ticket of claim ${ticket.claim_id}, live claim ${claim_id}`;
    return difference('ticket_of_another_claim', slot, ticket, detail);
  }
  // Committed there and not yet here, with its message still on the queue, is a claim on its way.
  const isOnItsWay = slot.has_message && claim_state !== 'dead_letter';
  if (claim_state === 'committed' || isOnItsWay) return undefined;
  return difference('ticket_without_claim', slot, ticket, `claim ${claim_id} is ${claim_state}`);
}

function statusOf({ claim_state, held_by_hand }: SlotRow): string {
  if (claim_state === 'committed') return 'CONSUMED';
  return claim_state !== null || held_by_hand ? 'RESERVED' : 'AVAILABLE';
}

function difference(
  kind: DifferenceKind,
  { slot_id, pool_id }: { slot_id: string; pool_id: string },
  ticket: TicketRow | undefined,
  detail: string,
): SlotDifference {
  return {
    kind,
    slot_id,
    pool_id,
    detail,
    ticket:
      ticket === undefined
        ? null
        : { claim_id: ticket.claim_id, user_id: ticket.user_id, verified: ticket.verified },
  };
}

/** Every difference that two looks agree on. */
export async function findDifferences(ports: ReconcilePorts): Promise<SlotDifference[]> {
  const confirmed: SlotDifference[] = [];
  let suspects: SlotDifference[] = [];
  const tickets = pages((after: TicketRow | undefined) => ports.tickets(after?.slot_id ?? null, PAGE_ROWS));
  const slots = pages((after: SlotRow | undefined) => ports.slots(after?.slot_id ?? null, PAGE_ROWS));
  let ticket = (await tickets.next()).value;
  let compared = 0;
  let live: SlotRow[] = [];
  for await (const slot of slots) {
    // Both come in the order of their ids, which for lower-case hexadecimal is the order of the text.
    for (; ticket && ticket.slot_id < slot.slot_id; ticket = (await tickets.next()).value)
      suspects.push(...compareSlot(undefined, ticket));
    const own = ticket?.slot_id === slot.slot_id ? ticket : undefined;
    suspects.push(...compareSlot(slot, own || undefined));
    if (own) ticket = (await tickets.next()).value;
    if (slot.claim_id !== null) live.push(slot);
    if (live.length >= PAGE_ROWS) {
      confirmed.push(...(await unfinishedVoids(live, ports)));
      live = [];
    }
    if (++compared % PAGE_ROWS === 0) ports.onProgress(compared);
    if (suspects.length >= PAGE_ROWS) {
      confirmed.push(...(await lookAgain(suspects, ports)));
      suspects = [];
    }
  }
  for (; ticket; ticket = (await tickets.next()).value) suspects.push(...compareSlot(undefined, ticket));
  ports.onProgress(compared);
  confirmed.push(...(await unfinishedVoids(live, ports)));
  confirmed.push(...(await lookAgain(suspects, ports)));
  for (const read of ports.endedMessages) confirmed.push(...(await endedMessages(read)));
  // The end of a claim puts right what else is wrong with its slot.
  const ending = new Set(
    confirmed.flatMap(({ kind, slot_id }) => (kind === 'void_unfinished' ? slot_id : [])),
  );
  return confirmed.filter(({ kind, slot_id }) => kind === 'void_unfinished' || !ending.has(slot_id));
}

/** Live claims that the ledger has voided, while nothing is on its way that would end them. */
async function unfinishedVoids(live: readonly SlotRow[], ports: ReconcilePorts): Promise<SlotDifference[]> {
  if (live.length === 0) return [];
  const voided = await ports.voided(live.flatMap(({ claim_id }) => claim_id ?? []));
  const unfinished = new Set(
    voided
      .filter(({ outbox_id, is_underway }) => outbox_id !== null && !is_underway)
      .map((row) => row.claim_id),
  );
  const suspects = live.filter(({ claim_id }) => unfinished.has(claim_id ?? ''));
  if (suspects.length === 0) return [];
  const again = await ports.slotsById(suspects.map(({ slot_id }) => slot_id));
  return again.flatMap((slot) => {
    const { slot_id, pool_id, claim_id, claim_state } = slot;
    if (claim_id === null || !unfinished.has(claim_id)) return [];
    const detail = `claim ${claim_id} is void in the ledger and ${claim_state} here`;
    return [{ kind: 'void_unfinished' as const, slot_id, pool_id, detail, ticket: { claim_id } }];
  });
}

async function lookAgain(suspects: SlotDifference[], ports: ReconcilePorts): Promise<SlotDifference[]> {
  const again: SlotDifference[] = [];
  for (let at = 0; at < suspects.length; at += PAGE_ROWS) {
    const some = suspects.slice(at, at + PAGE_ROWS);
    const ids = [...new Set(some.map((suspect) => suspect.slot_id))];
    // The intake first: a claim that is committed by then has its ticket by the time the ledger is asked.
    const slots = new Map((await ports.slotsById(ids)).map((slot) => [slot.slot_id, slot]));
    const tickets = new Map((await ports.ticketsById(ids)).map((ticket) => [ticket.slot_id, ticket]));
    const now = ids.flatMap((id) => compareSlot(slots.get(id), tickets.get(id)));
    again.push(...now.filter((found) => some.some((suspect) => isSame(suspect, found))));
  }
  return again;
}

function isSame(one: Difference, other: Difference): boolean {
  return one.kind === other.kind && one.slot_id === other.slot_id && one.detail === other.detail;
}

async function endedMessages(read: EndedMessages): Promise<SlotDifference[]> {
  const found: SlotDifference[] = [];
  for await (const row of pages((after: EndedMessageRow | undefined) =>
    read(after?.msg_id ?? 0, PAGE_ROWS),
  )) {
    const [again] = await read(row.msg_id - 1, 1);
    if (again?.msg_id === row.msg_id)
      found.push(
        difference(
          'message_of_ended_claim',
          row,
          undefined,
          `message ${row.msg_id}, claim ${row.claim_state}`,
        ),
      );
  }
  return found;
}

/** Every row, a page at a time. */
export async function* pages<Row>(
  read: (after: Row | undefined) => Promise<Row[]>,
): AsyncGenerator<Row, undefined> {
  let after: Row | undefined;
  for (;;) {
    const page = await read(after);
    yield* page;
    if (page.length < PAGE_ROWS) return undefined;
    after = page.at(-1);
  }
}
