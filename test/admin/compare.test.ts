import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  compareSlot,
  findDifferences,
  PAGE_ROWS,
  type ReconcilePorts,
  type SlotRow,
  type TicketRow,
  type VoidedRow,
} from '#core/reconcile.ts';

const FREE: SlotRow = {
  slot_id: 's1',
  pool_id: 'p',
  slot_status: 'AVAILABLE',
  claim_id: null,
  user_id: null,
  claim_state: null,
  has_message: false,
  expects_ticket: true,
  held_by_hand: false,
};
const QUEUED: SlotRow = {
  ...FREE,
  slot_status: 'RESERVED',
  claim_id: 'c1',
  user_id: 'u1',
  claim_state: 'queued',
  has_message: true,
};
const COMMITTED: SlotRow = {
  ...QUEUED,
  slot_status: 'CONSUMED',
  claim_state: 'committed',
  has_message: false,
};
const TICKET: TicketRow = { slot_id: 's1', pool_id: 'p', user_id: 'u1', claim_id: 'c1', verified: true };

type Case = [name: string, slot: SlotRow | undefined, ticket: TicketRow | undefined, kinds: string[]];
const CASES: Case[] = [
  ['neither a slot nor a ticket', undefined, undefined, []],
  ['a slot on sale', FREE, undefined, []],
  ['a claim on the queue', QUEUED, undefined, []],
  ['a claim that is committed there and not yet here', QUEUED, TICKET, []],
  [
    'a validated claim that is committed there and not yet here',
    { ...QUEUED, claim_state: 'validated' },
    TICKET,
    [],
  ],
  ['a dead letter', { ...QUEUED, claim_state: 'dead_letter' }, undefined, []],
  ['a ticket of its claim', COMMITTED, TICKET, []],
  [
    'a committed claim of a pool that commits elsewhere',
    { ...COMMITTED, expects_ticket: false },
    undefined,
    [],
  ],
  [
    'a slot reserved by hand with its message',
    { ...FREE, slot_status: 'RESERVED', held_by_hand: true },
    undefined,
    [],
  ],
  ['a slot withdrawn while its claim lives', { ...COMMITTED, slot_status: null }, TICKET, []],

  ['a ticket of an unknown slot', undefined, TICKET, ['ticket_without_claim']],
  ['a ticket of a slot on sale', FREE, TICKET, ['ticket_on_sale']],
  [
    'a ticket of a sold slot without a claim',
    { ...FREE, slot_status: 'CONSUMED' },
    TICKET,
    ['ticket_without_claim'],
  ],
  [
    'a ticket whose claim lost its message',
    { ...QUEUED, has_message: false },
    TICKET,
    ['ticket_without_claim'],
  ],
  [
    'a ticket whose claim is a dead letter',
    { ...QUEUED, claim_state: 'dead_letter' },
    TICKET,
    ['ticket_without_claim'],
  ],
  ['a ticket of another claim', COMMITTED, { ...TICKET, claim_id: 'c2' }, ['ticket_of_another_claim']],
  ['a ticket of another user', COMMITTED, { ...TICKET, user_id: 'u2' }, ['ticket_of_another_claim']],
  ['a committed claim without a ticket', COMMITTED, undefined, ['claim_without_ticket']],
  [
    'a queued claim without a message',
    { ...QUEUED, has_message: false },
    undefined,
    ['claim_without_message'],
  ],
  [
    'a dead letter that is not there',
    { ...QUEUED, claim_state: 'dead_letter', has_message: false },
    undefined,
    ['claim_without_message'],
  ],
  [
    'a queued claim whose slot is on sale',
    { ...QUEUED, slot_status: 'AVAILABLE' },
    undefined,
    ['slot_status'],
  ],
  ['a queued claim whose slot is sold', { ...QUEUED, slot_status: 'CONSUMED' }, undefined, ['slot_status']],
  ['a ticket whose slot is on sale', { ...COMMITTED, slot_status: 'AVAILABLE' }, TICKET, ['slot_status']],
  ['a reserved slot without a claim', { ...FREE, slot_status: 'RESERVED' }, undefined, ['slot_status']],
  [
    'a sold slot without a claim or a ticket',
    { ...FREE, slot_status: 'CONSUMED' },
    undefined,
    ['slot_status'],
  ],
  [
    'a committed claim without a ticket, its slot on sale',
    { ...COMMITTED, slot_status: 'AVAILABLE' },
    undefined,
    ['claim_without_ticket', 'slot_status'],
  ],
];

describe('compareSlot', () => {
  for (const [name, slot, ticket, kinds] of CASES) {
    it(`finds ${kinds.length === 0 ? 'nothing' : kinds.join(' and ')} in ${name}`, () => {
      assert.deepEqual(
        compareSlot(slot, ticket).map(({ kind }) => kind),
        kinds,
      );
    });
  }
});

const id = (at: number): string => String(at).padStart(8, '0');

/** Both databases as lists, and a hook that changes them between the first look and the second. */
function fakePorts(
  slots: SlotRow[],
  tickets: TicketRow[],
  beforeSecondLook: () => void = () => undefined,
  voided: VoidedRow[] = [],
): ReconcilePorts {
  const page = <Row extends { slot_id: string }>(rows: Row[], after: string | null, limit: number): Row[] =>
    rows.filter((row) => after === null || row.slot_id > after).slice(0, limit);
  return {
    slots: async (after, limit) => page(slots, after, limit),
    tickets: async (after, limit) => page(tickets, after, limit),
    slotsById: async (ids) => {
      beforeSecondLook();
      return slots.filter((slot) => ids.includes(slot.slot_id));
    },
    ticketsById: async (ids) => tickets.filter((ticket) => ids.includes(ticket.slot_id)),
    endedMessages: [async () => []],
    voided: async (ids) => voided.filter(({ claim_id }) => ids.includes(claim_id)),
    onProgress: () => undefined,
  };
}

describe('findDifferences', () => {
  it('matches slots and tickets over many pages, and finds the tickets between, before and after', async () => {
    const count = PAGE_ROWS * 2 + 7;
    const slots = Array.from({ length: count }, (_, at) => ({ ...COMMITTED, slot_id: id(at * 2 + 10) }));
    const tickets = slots.map(({ slot_id }) => ({ ...TICKET, slot_id }));
    const strays = [id(1), id(PAGE_ROWS * 2 + 11), id(99_999_999)];
    const all = [...tickets, ...strays.map((slot_id) => ({ ...TICKET, slot_id }))].sort((a, b) =>
      a.slot_id < b.slot_id ? -1 : 1,
    );
    const found = await findDifferences(fakePorts(slots, all));
    assert.deepEqual(
      found.map(({ kind, slot_id }) => [kind, slot_id]),
      strays.map((stray) => ['ticket_without_claim', stray]),
    );
    assert.deepEqual(await findDifferences(fakePorts(slots, tickets)), []);
  });

  it('finds more differences than a page has rows', async () => {
    const slots = Array.from({ length: PAGE_ROWS * 2 + 1 }, (_, at) => ({ ...COMMITTED, slot_id: id(at) }));
    assert.equal((await findDifferences(fakePorts(slots, []))).length, PAGE_ROWS * 2 + 1);
  });

  it('takes back what was only on its way', async () => {
    const slots = [FREE];
    const moved = fakePorts(slots, [TICKET], () => {
      slots[0] = COMMITTED;
    });
    assert.deepEqual(await findDifferences(moved), [], 'claimed and committed between the two reads');
    const kept = await findDifferences(fakePorts([FREE], [TICKET]));
    assert.deepEqual(
      kept.map(({ kind }) => kind),
      ['ticket_on_sale'],
    );
  });

  it('finds a claim that lives although the ledger has voided it, and nothing else about its slot', async () => {
    const voided = { claim_id: String(COMMITTED.claim_id), outbox_id: 'operator:1', is_underway: false };
    const kinds = async (row: VoidedRow, before?: () => void, slots = [COMMITTED]) =>
      (await findDifferences(fakePorts(slots, [], before, [row]))).map(({ kind }) => kind);
    assert.deepEqual(await kinds(voided), ['void_unfinished']);
    assert.deepEqual(await kinds({ ...voided, is_underway: true }), ['claim_without_ticket'], 'on its way');
    assert.deepEqual(await kinds({ ...voided, outbox_id: null }), ['claim_without_ticket'], 'ends by itself');
    const slots = [COMMITTED];
    const freed = () => {
      slots[0] = FREE;
    };
    assert.deepEqual(await kinds(voided, freed, slots), [], 'freed between the two looks');
  });
});
