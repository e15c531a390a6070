// The processes of this model: doors and workers as the product has them, but that each of their calls waits for the history.

import { createEndPorts, Ender } from '#core/bridge/ends.ts';
import type { Report } from '#core/lease_worker.ts';
import { type BegunCheckout, createCheckoutStore } from '#core/orders/checkout.ts';
import { Closer } from '#core/orders/closer.ts';
import { Courier } from '#core/orders/courier.ts';
import { oneCell, PaymentError } from '#core/orders/ports.ts';
import { Refunder } from '#core/orders/refunder.ts';
import { createPayments } from '#core/orders/stripe.ts';
import { type Log, NO_METRICS } from '#core/ports.ts';
import {
  findDifferences,
  type ReconcilePorts,
  type SlotRow,
  type TicketRow,
  type VoidedRow,
} from '#core/reconcile.ts';
import type { Ask, Body } from './actors.ts';
import { breakCalls } from './broken.ts';
import { ACTOR } from './rules.ts';
import type { OrderState } from './state.ts';
import { stripeClient } from './stripe_client.ts';
import { codeOf, type World } from './world.ts';

/** A worker's lease: `advance` lets it run out. */
const LEASE_SEC = 100;

/** What a process does; `luck` is 0 to 9. True where it found something to do. */
type Make = (world: World, luck: number) => Body;

type Taken = { id: string; readCt: number; message: object };

/** One message, carried as the bridge does it. Now and then it is given up. */
const bridge: Make = (world, luck) => async (ask) => {
  const [taken] = await ask('db1', 'takes a message', () => takeMessage(world));
  if (taken === undefined) return false;
  const finish = (verdict: string, reason: string | null) =>
    ask('db1', `finishes as ${verdict}`, () => finishMessage(world, taken, verdict, reason));
  if (luck < 2) return finish('dead_letter', '22023: planted').then(() => true);
  const outcome = await ask('db2', 'finalizes', () => finalize(world, taken));
  if (outcome === 'voided') await finish('gone', 'the claim has ended');
  else if (outcome === 'conflict') await finish('dead_letter', 'ticket_conflict');
  else await finish('committed', null);
  return true;
};

const TAKEN = 'select msg_id::text as id, read_ct as "readCt", message from';

async function takeMessage(world: World): Promise<Taken[]> {
  const taken = await world.side('db1').rows<Taken>(
    `${TAKEN} (select array(select lane from public.engine_config order by pool_id) as lanes) a
       cross join lateral public.bridge_take(a.lanes, array_fill(1, array[cardinality(a.lanes)]), ${LEASE_SEC})`,
  );
  // What this worker does not carry now waits for its lease, as with a worker that died.
  if (taken.length > 0) return taken;
  return world
    .side('db1')
    .rows<Taken>(
      `${TAKEN} public.bridge_take_suspect(array(select lane from public.engine_config), ${LEASE_SEC})`,
    );
}

async function finishMessage(world: World, { id, readCt }: Taken, verdict: string, reason: string | null) {
  await world
    .side('db1')
    .rows(
      'select public.bridge_finish(array[$1::bigint], array[$2::int], array[$3], array[$4::text], array[0])',
      [...[id, readCt, verdict, reason]],
    );
}

async function finalize(world: World, { message }: Taken): Promise<string> {
  const [row] = await world
    .side('db2')
    .rows<{ outcome: string }>('select outcome from public.finalize_batch($1)', [JSON.stringify([message])]);
  return row?.outcome ?? 'no row';
}

/** `reconcile --fix`: both sides are read page by page, and what differs twice is repaired. */
const reconcile: Make = (world) => async (ask) => {
  const one = <Row extends object>(what: string, sql: string, args: unknown[]) =>
    ask('db1', what, () => world.side('db1').rows<Row>(sql, args));
  const two = <Row extends object>(what: string, sql: string, args: unknown[]) =>
    ask('db2', what, () => world.side('db2').rows<Row>(sql, args));
  const ports: ReconcilePorts = {
    slots: (after, limit) =>
      one<SlotRow>('reads slots', 'select * from public.reconcile_claims($1, $2)', [after, limit]),
    slotsById: (ids) =>
      one<SlotRow>('reads slots again', 'select * from public.reconcile_claims(null, $2, $1)', [
        ids,
        ids.length,
      ]),
    tickets: (after, limit) =>
      two<TicketRow>('reads tickets', 'select * from public.tickets_page($1, $2)', [after, limit]),
    ticketsById: (ids) =>
      two<TicketRow>('reads tickets again', 'select * from public.tickets_page(null, $2, $1)', [
        ids,
        ids.length,
      ]),
    endedMessages: [
      (after, limit) =>
        one('reads messages', 'select * from public.reconcile_messages($1, $2)', [after, limit]),
    ],
    voided: (ids) => two<VoidedRow>('reads voided claims', 'select * from public.voided_claims($1)', [ids]),
    onProgress: () => undefined,
  };
  const found = await findDifferences(ports);
  for (const { kind, slot_id, ticket } of found)
    await one(`repairs ${kind}`, `select public.reconcile_fix($1, $2, '${ACTOR}', $3)`, [
      slot_id,
      kind,
      ticket,
    ]);
  return found.length > 0;
};

const SILENT: Log = {
  debugEnabled: false,
  ...{ debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
};

/** What the product's own workers need, each call of which waits for the history. */
function portsOf(world: World, ask: Ask) {
  const calls = breakCalls(world, ask);
  const payments = createPayments(stripeClient(world, ask));
  return { ...calls, paymentsOf: async () => payments, metrics: NO_METRICS, log: SILENT, now: Date.now };
}

/** True where it took something. */
async function hasWorked(part: { drain(signal: AbortSignal): Promise<Report> }): Promise<boolean> {
  return (await part.drain(new AbortController().signal)).total > 0;
}

const closer: Make = (world) => (ask) => hasWorked(new Closer(portsOf(world, ask), LEASE_SEC));

const courier: Make = (world) => (ask) => {
  const { db1, ...ports } = portsOf(world, ask);
  return hasWorked(new Courier({ ...ports, cells: oneCell(db1) }, { leaseSec: LEASE_SEC }));
};

const refunder: Make = (world) => (ask) => hasWorked(new Refunder(portsOf(world, ask), LEASE_SEC));

/** Ends claims that were never paid for and that a worker may still carry. */
const ender: Make = (world) => async (ask) => {
  const { db1, db2, log } = portsOf(world, ask);
  return (
    (await new Ender(
      createEndPorts(db1, () => db2, log),
      0,
    ).end(new AbortController().signal)) > 0
  );
};

/** A buyer asks for the page to pay on: the calls of the checkout route. */
export const openDoor =
  (world: World, order: OrderState): Body =>
  async (ask) => {
    const { db1, paymentsOf } = portsOf(world, ask);
    const store = createCheckoutStore(
      (_, asked) => asked(db1),
      (hex) => hex,
    );
    const claim = { claim_id: order.id, user_id: order.user } as Parameters<typeof store.begin>[0];
    let begun: BegunCheckout | undefined;
    try {
      begun = await store.begin(claim, null, 'https://tickets.example');
    } catch (error) {
      // The hold is over, or it is paid.
      if (['SL040', 'SL041'].includes(codeOf(error))) return codeOf(error);
      throw error;
    }
    if (begun === undefined || begun.url !== null) return 'known';
    try {
      const payments = await paymentsOf();
      const session = await payments.createSession(begun.params, begun.idempotency_key);
      return await store.created(begun, session);
    } catch (error) {
      if (error instanceof PaymentError) return error.kind;
      throw error;
    }
  };

export const PROCESSES = { bridge, ender, reconcile, closer, courier, refunder } satisfies Record<
  string,
  Make
>;
export type ProcessName = keyof typeof PROCESSES;
