// `sluice reconcile`: do the intake and the ledger tell the same story, and if not, what may be done about it.

import {
  type Difference,
  type EndedMessageRow,
  findDifferences,
  type ReconcilePorts,
  type SlotRow,
  type TicketRow,
  type VoidedRow,
} from '#core/reconcile.ts';
import {
  findUnsettledPayments,
  type PaymentReconcilePorts,
  type SettledRow,
} from '#core/reconcile_orders.ts';
import { textOf } from '#core/text.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { settleOnce } from '../orders/crew.ts';
import { API_VARIABLES } from '../webhook/backfill.ts';
import { action, UsageError, type Values } from './grammar.ts';
import { actor, OPTION, readDatabaseUrls, VARIABLES } from './operator.ts';
import { type Progress, startProgress } from './progress.ts';
import { fromAll, refuseMoving } from './reconcile_cells.ts';
import { reconcileWithStripe } from './reconcile_stripe.ts';
import { formatTable } from './table.ts';
import { readMoment } from './values.ts';

const CONNECTIONS = 1;
const FIXED = 'fixed';
const FOR_A_PERSON = 'for a person';
/** Workers wait for it until the payment is 15 minutes old. */
const WAITS_FOR_ORDER = 'waits for its order';
const NOT_SETTLED = 'not settled';

type Handled = Difference & { outcome: string };

interface Repaired {
  readonly handled: Handled[];
  /** Why payments could not be settled. */
  readonly failure?: unknown;
}

const OPTIONS = {
  fix: { about: 'repair what may be repaired, each with an audit row; a ticket is never touched' },
  stripe: {
    about: 'compare with Stripe instead: payments, what was captured and refunded, checkout sessions',
  },
  since: {
    value: 'TIME',
    about: 'with --stripe: payments made from then on, such as 2026-02-24 (default: the last 30 days)',
  },
  json: OPTION.json,
} as const;

async function run({ fix: repairs, stripe, since, json }: Values<typeof OPTIONS>): Promise<number> {
  if (since !== undefined && !stripe) throw new UsageError('--since is for --stripe');
  if (repairs && stripe)
    throw new UsageError('--stripe repairs nothing', 'it names the command that fills what is missing');
  const { cells, db1Url, db2Url } = readDatabaseUrls(process.env);
  if (!db1Url || !db2Url)
    throw new StackError('DB1_URL and DB2_URL must both be set', 'see `sluice reconcile --help`');
  if (stripe)
    return reconcileWithStripe(
      since === undefined ? undefined : Date.parse(readMoment('--since', since)),
      json,
    );
  const log = createLog();
  const open = (url: string) =>
    createDatabase({ url, max: CONNECTIONS, applicationName: 'sluice-reconcile', log });
  const intakes = cells.map(({ url }) => open(url));
  const db2 = open(db2Url);
  try {
    await refuseMoving(intakes);
    const settle = () => settleOnce({ db1Url, cells, db2Url, log });
    const { handled, failure }: Repaired = repairs
      ? await repair(intakes, db2, settle)
      : { handled: await look(intakes, db2) };
    report(handled, json);
    if (failure !== undefined)
      throw new StackError(
        `payments could not be settled: ${textOf(failure)}`,
        'run `sluice reconcile --fix` again, which goes on from here',
        failure,
      );
    return handled.every(isFixed) ? 0 : 1;
  } finally {
    await Promise.all([...intakes, db2].map((database) => database.end()));
  }
}

async function look(intakes: readonly Database[], db2: Database): Promise<Handled[]> {
  const found = [
    ...(await compareSlots(intakes, db2)),
    ...(await findUnsettledPayments(paymentPorts(intakes, db2))),
  ];
  return found.map((difference) => ({ ...difference, outcome: 'found' }));
}

/**
 * Payments come last: an order that the intake has forgotten is known again by its tickets. The intake decides about them here and
 * now: the holds of a moment to which it was restored are over, and the first worker would end them.
 */
async function repair(
  intakes: readonly Database[],
  db2: Database,
  settle: () => Promise<void>,
): Promise<Repaired> {
  const slots = await repairSlots(intakes, db2);
  const payments = await repairPayments(intakes, db2, slots);
  try {
    await settle();
  } catch (failure) {
    return { handled: [...slots, ...payments.map((one) => unlessDecided(one, false, NOT_SETTLED))], failure };
  }
  const keys = payments.flatMap(({ payment_key }) => payment_key ?? []);
  const decided = new Set(await paymentPorts(intakes, db2).decided(keys));
  // A claim that was held, and is paid for now, can be voided.
  const isAgain = slots.some(({ kind, outcome }) => kind === 'void_unfinished' && outcome !== FIXED);
  return {
    handled: [
      ...(isAgain ? [...slots.filter(isFixed), ...(await repairSlots(intakes, db2))] : slots),
      ...payments.map((one) => unlessDecided(one, decided.has(one.payment_key ?? ''), WAITS_FOR_ORDER)),
    ],
  };
}

const isFixed = ({ outcome }: Handled): boolean => outcome === FIXED;

/** A payment that is carried again is fixed once it has its decision. */
const unlessDecided = (payment: Handled, isDecided: boolean, outcome: string): Handled =>
  isFixed(payment) && !isDecided ? { ...payment, outcome } : payment;

async function repairSlots(intakes: readonly Database[], db2: Database): Promise<Handled[]> {
  const handled: Handled[] = [];
  for (let isAgain = true; isAgain; ) {
    const round: Handled[] = [];
    for (const difference of await compareSlots(intakes, db2))
      round.push({ ...difference, outcome: await fixSlot(intakes, db2, difference) });
    // The slot of a void that is finished now may have been sold again.
    isAgain = round.some(({ kind, outcome }) => kind === 'void_unfinished' && outcome === FIXED);
    handled.push(...(isAgain ? round.filter(isFixed) : round));
  }
  return handled;
}

async function repairPayments(
  intakes: readonly Database[],
  db2: Database,
  slots: readonly Handled[],
): Promise<Handled[]> {
  const open = slots.filter(({ kind, outcome }) => kind !== 'void_unfinished' && outcome !== FIXED);
  const left = new Set(open.map(({ ticket }) => ticket?.claim_id));
  const payments: Handled[] = [];
  for (const difference of await findUnsettledPayments(paymentPorts(intakes, db2))) {
    // Decided without its ticket, it would go back or buy a second one.
    const waits = difference.claim_ids?.some((id) => left.has(id));
    payments.push({ ...difference, outcome: waits ? FOR_A_PERSON : await fixPayment(db2, difference) });
  }
  return payments;
}

async function compareSlots(intakes: readonly Database[], db2: Database): Promise<Difference[]> {
  const rows = await fromAll<{ reconcile_total: number }>(intakes, 'reconcile_total', {});
  const progress = startProgress(
    rows.reduce((total, { reconcile_total }) => total + reconcile_total, 0),
    'slots',
  );
  try {
    return await findDifferences(createPorts(intakes, db2, progress));
  } finally {
    progress.end();
  }
}

function createPorts(intakes: readonly Database[], db2: Database, progress: Progress): ReconcilePorts {
  let soFar = 0;
  return {
    // In the order of their ids: the pages of the cells become one page.
    slots: async (after, limit) =>
      (await fromAll<SlotRow>(intakes, 'reconcile_claims', { p_after: after, p_limit: limit }))
        .sort((a, b) => (a.slot_id < b.slot_id ? -1 : 1))
        .slice(0, limit),
    slotsById: (ids) =>
      fromAll<SlotRow>(intakes, 'reconcile_claims', { p_limit: ids.length, p_slot_ids: ids }),
    tickets: (after, limit) => db2.call<TicketRow>('public.tickets_page', { p_after: after, p_limit: limit }),
    ticketsById: (ids) =>
      db2.call<TicketRow>('public.tickets_page', { p_limit: ids.length, p_resource_ids: ids }),
    endedMessages: intakes.map(
      (db1) => (after: number, limit: number) =>
        db1.call<EndedMessageRow>('public.reconcile_messages', { p_after: after, p_limit: limit }),
    ),
    voided: (ids) => db2.call<VoidedRow>('public.voided_claims', { p_claim_ids: ids }),
    onProgress(compared) {
      progress.advance(compared - soFar);
      soFar = compared;
    },
  };
}

function paymentPorts(intakes: readonly Database[], db2: Database): PaymentReconcilePorts {
  return {
    settled: (after, limit) =>
      db2.call<SettledRow>('public.settled_payments', { p_after: after, p_limit: limit }),
    decided: async (keys) => {
      const args = { p_payment_keys: keys };
      const rows = await fromAll<{ decided_payments: string }>(intakes, 'decided_payments', args);
      return rows.map((row) => row.decided_payments);
    },
  };
}

/** It is carried to the intake again. */
async function fixPayment(db2: Database, { kind, outbox_id }: Difference): Promise<string> {
  const again = { p_ids: [outbox_id], p_actor: actor(), p_reason: kind };
  const [row] = await db2.call<{ resettle_payments: number }>('public.resettle_payments', again);
  return row?.resettle_payments === 1 ? FIXED : FOR_A_PERSON;
}

/** The cell that has the slot repairs it; the others find nothing to do. */
async function fixSlot(
  intakes: readonly Database[],
  db2: Database,
  { kind, slot_id, ticket }: Difference,
): Promise<string> {
  const args = {
    p_slot_id: slot_id,
    p_kind: kind,
    p_actor: actor(),
    p_ticket: await withPurchase(db2, ticket),
  };
  for (const db1 of intakes) {
    const [row] = await db1.call<{ reconcile_fix: string }>('public.reconcile_fix', args);
    if (row?.reconcile_fix === 'fixed') return FIXED;
  }
  return FOR_A_PERSON;
}

/** With the order and the payment that it was bought by, where it was: the intake may have forgotten both. */
async function withPurchase(db2: Database, ticket: Difference['ticket']): Promise<object | null> {
  if (ticket?.user_id === undefined) return ticket;
  const [row] = await db2.call<{ ticket_purchase: object | null }>('public.ticket_purchase', {
    p_claim_id: ticket.claim_id,
  });
  return { ...ticket, ...(row?.ticket_purchase && { purchase: row.ticket_purchase }) };
}

function report(handled: Handled[], asJson: boolean): void {
  if (asJson) {
    console.log(JSON.stringify({ differences: handled }));
    return;
  }
  if (handled.length === 0) {
    console.log('No differences: both databases tell the same story.');
    return;
  }
  const rows = handled.map(({ kind, slot_id, payment_key, pool_id, detail, outcome }) => [
    kind,
    slot_id ?? payment_key ?? '-',
    pool_id,
    detail,
    outcome,
  ]);
  console.log(formatTable(['DIFFERENCE', 'SLOT OR PAYMENT', 'POOL', 'DETAIL', 'OUTCOME'], rows));
}

export const command = action({
  about: `Compare the intake with the ledger

Compares DB1 with DB2, slot by slot, while both run, and reports every difference:

  ticket_without_claim     a ticket whose claim the intake does not call committed    --fix: it is
  ticket_on_sale           a ticket whose slot is on sale                             --fix: it is sold
  ticket_of_another_claim  a ticket of another claim or user than the intake's        --fix: a dead letter gives way
  claim_without_ticket     a committed claim without a ticket                         --fix: carried again
  claim_without_message    a claim on its way, with neither message nor dead letter   --fix: queued again
  message_of_ended_claim   a message of a claim that has ended                        --fix: archived
  slot_status              a slot that is not what its claim says                     --fix: it is
  void_unfinished          a ticket that is void in the ledger, and a claim that lives --fix: it ends
  payment_unsettled        a payment that the intake has no decision for (any more)   --fix: decided again

What --fix calls "for a person" it may not mend, or not yet. A payment "waits for its order" where no cell knows that: the money goes
back once the payment is 15 minutes old.

With --stripe it compares both databases with Stripe, for each Stripe endpoint that has a key, and repairs nothing:

  payment_missing          Stripe captured a payment that the ledger does not have
  captured_differs         the two differ in what was captured
  refunded_differs         the two differ in what was refunded
  dispute_differs          a dispute moved money, and the ledger does not have it
  payment_unknown          a payment bought seats, and Stripe does not have it: was it forged?
  session_unknown          a checkout session of ours that the intake does not know
  session_open             an open session whose order is over: it could still be paid
  session_undecided        a paid session whose payment the intake has not decided about`,
  options: OPTIONS,
  environment: { ...VARIABLES.databases, ...VARIABLES.operator, ...API_VARIABLES },
  exits: ['when nothing differs or all was repaired', 'when differences are left'],
  examples: [
    'sluice reconcile',
    'sluice reconcile --fix --json',
    'sluice reconcile --stripe --since 2026-02-24',
  ],
  run,
});
