// What a paid demo came to: a table of what the buyers did, the three books side by side, and a verdict.

import { moneyOf } from '#core/money.ts';
import { formatTable } from '../../commands/table.ts';
import type { ServedBuyer } from './buyer.ts';
import type { Entrance } from './entrance.ts';
import type { Books } from './facts.ts';
import type { Verdict } from './judge.ts';

export interface PaidOutcome {
  readonly pool_id: string;
  readonly ok: boolean;
  readonly rows: readonly PaidRow[];
  readonly sums: Verdict['sums'];
  readonly levels: Books['levels'];
  readonly problems: readonly string[];
  /** Null where tickets have no links. */
  readonly entrance: Entrance | null;
  /** Of one ticket that is valid. */
  readonly ticket_url: string | null;
}

/** Buyers who did the same and got the same. Amounts are in minor units. */
export interface PaidRow {
  readonly what: string;
  readonly buyers: number;
  readonly seats: number;
  readonly tickets: number;
  readonly received: number;
  readonly refunded: number;
}

const WHAT: Readonly<Record<string, string>> = {
  'pays paid': 'paid in time',
  'leaves expired': 'let the hold run out',
  'late paid': 'paid late, got seats',
  'late refund_due': 'paid late, sold out: money back',
  'late refunded': 'paid late, sold out: money back',
  'twice paid': 'paid twice: one goes back',
  'refunded voided': 'refunded by the seller',
};

export function rowsOf(served: readonly ServedBuyer[], { orders, payments }: Books): PaidRow[] {
  const groups = new Map<string, ServedBuyer[]>();
  for (const buyer of served) {
    const what =
      buyer.end === 'no_seats'
        ? 'found too few seats'
        : (WHAT[`${buyer.way} ${buyer.end}`] ?? `${buyer.way}: ${buyer.end}`);
    groups.set(what, [...(groups.get(what) ?? []), buyer]);
  }
  const sum = <Item>(items: readonly Item[], read: (item: Item) => number) =>
    items.reduce((total, item) => total + read(item), 0);
  return [...groups].map(([what, buyers]) => {
    const ids = new Set(buyers.map(({ claim }) => claim?.claim_id));
    const paid = payments.filter(({ order_id }) => ids.has(order_id));
    const own = orders.filter(({ intake }) => ids.has(intake.order.order_id));
    return {
      what,
      buyers: buyers.length,
      seats: sum(buyers, ({ seats }) => seats),
      tickets: sum(own, ({ ledger }) => ledger.tickets.length),
      received: sum(paid, ({ received }) => received),
      refunded: sum(paid, ({ refunded }) => refunded),
    };
  });
}

export function describePaid(outcome: PaidOutcome, currency: string): string {
  const money = (amount: number) => moneyOf(amount, currency);
  const { rows, sums, levels } = outcome;
  const cells = ({ what, buyers, seats, tickets, received, refunded }: PaidRow) => [
    what,
    ...[buyers, seats, tickets].map(String),
    money(received),
    money(refunded),
    money(received - refunded),
  ];
  const all = rows.reduce((total, row) => ({
    what: 'all',
    buyers: total.buyers + row.buyers,
    seats: total.seats + row.seats,
    tickets: total.tickets + row.tickets,
    received: total.received + row.received,
    refunded: total.refunded + row.refunded,
  }));
  const header = ['BUYERS WHO', 'BUYERS', 'SEATS', 'TICKETS', 'PAID', 'REFUNDED', 'KEPT'];
  const books: [string, string][] = [
    [
      "Stripe's books",
      `${money(sums.received)} received, ${money(sums.refunded)} refunded, ${money(sums.keptAtStripe)} kept`,
    ],
    ['The ledger', `${money(sums.keptInLedger)} kept, ${sums.tickets} tickets`],
    ['The intake', `${levels.consumed} seats sold, ${levels.reserved} held, ${levels.available} free`],
    ...entranceLine(outcome.entrance),
  ];
  const verdict = outcome.ok
    ? `All three books agree: ${sums.tickets} tickets, ${money(sums.keptAtStripe)}, and nothing owed.`
    : `This is not what Sluice promises:\n${outcome.problems.map((problem) => `  - ${problem}`).join('\n')}`;
  return [
    formatTable(header, [...rows.map(cells), cells(all)]),
    books.map(([name, text]) => `  ${name.padEnd(16)}${text}`).join('\n'),
    verdict,
    ...(outcome.ticket_url === null ? [] : [`A ticket to open: ${outcome.ticket_url}`]),
  ].join('\n\n');
}

function entranceLine(entrance: Entrance | null): [string, string][] {
  if (entrance === null) return [];
  const { first, second, refunded } = entrance;
  const taken = refunded === null ? '' : `; a refunded one: ${refunded}`;
  return [['The entrance', `a ticket: ${first}, the second time: ${second}${taken}`]];
}
