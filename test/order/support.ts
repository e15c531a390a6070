// Orders over real sessions: a pool that is paid for, and what the ledger tells about a payment.

import type { Session } from '../support/sessions.ts';

const PRICE = 1_000;

export type Order = { order_id: string; pool_id: string; user_id: string; seats: number };
export type Settled = { decision: string; reason: string; claim_ids: string[] };

let pools = 0;

/** A new pool that is paid for, with so many slots. */
export async function newPaidPool(session: Session, slots: number, rules: object = {}): Promise<string> {
  const pool = `paid_${++pools}`;
  const payment = {
    confirm_by: 'payment',
    price: PRICE,
    currency: 'eur',
    payment_tenant: 'stripe',
    hold_sec: 600,
  };
  await session.rows(`select public.pool_create($1, $2, $3, 'olga')`, [
    pool,
    slots,
    { ...payment, ...rules },
  ]);
  return pool;
}

type Answer = { outcome: string; claim_id: string | null };

async function claim(session: Session, pool: string, user: string, quantity: number): Promise<Answer> {
  const [answer] = await session.rows<Answer>(
    'select outcome, claim_id from public.claim_batch(array[$1], array[$2], array[null], p_quantities => array[$3::int])',
    [pool, user, quantity],
  );
  if (answer === undefined) throw new Error('a request without an answer');
  return answer;
}

/** What claim_batch says to one request for so many slots. */
export async function ask(session: Session, pool: string, user: string, quantity = 1): Promise<string> {
  return (await claim(session, pool, user, quantity)).outcome;
}

/** A new order. */
export async function order(session: Session, pool: string, user: string, quantity = 1): Promise<Order> {
  const { outcome, claim_id } = await claim(session, pool, user, quantity);
  const [made] = await session.rows<Order>('select * from public.orders where order_id = $1', [claim_id]);
  if (made === undefined) throw new Error(`no order of ${user} in ${pool}: ${outcome}`);
  return made;
}

const factOf = ({ order_id, user_id, seats }: Order, id: string) => ({
  payment_key: `stripe/${id}`,
  tenant: 'stripe',
  livemode: true,
  claim_id: order_id,
  user_id,
  amount: seats * PRICE,
  currency: 'eur',
});

/** The right payments for these orders, at once; the ids of those that were decided. */
export async function settleAll(session: Session, orders: readonly Order[]): Promise<string[]> {
  const facts = orders.map((one) => factOf(one, `pi_${one.order_id}`));
  const rows = await session.rows<{ order_id: string }>('select order_id from public.settle_payments($1)', [
    JSON.stringify(facts),
  ]);
  return rows.map(({ order_id }) => order_id).sort();
}

/** The right payment for this order. */
export async function settle(session: Session, order: Order, id: string): Promise<Settled> {
  const [settled] = await session.rows<Settled>('select * from public.settle_payment($1, false)', [
    factOf(order, id),
  ]);
  if (settled === undefined) throw new Error('a settlement without an answer');
  return settled;
}

export const expire = (session: Session) => session.value<number>('select public.expire_holds()');

export const over = (session: Session, { order_id }: Order) =>
  session.rows(`update public.orders set hold_until = now() - interval '1 second' where order_id = $1`, [
    order_id,
  ]);

/** The states of the order's claims, in the order of their ids. */
export async function statesOf(session: Session, { order_id }: Order): Promise<string[]> {
  const rows = await session.rows<{ state: string }>(
    'select state::text from public.claims where order_id = $1 order by claim_id',
    [order_id],
  );
  return rows.map(({ state }) => state);
}

export const messagesOf = (session: Session, { order_id }: Order) =>
  session.value<number>(
    `select count(*)::int from pgmq.q_intake_queue where message ->> 'order_id' = $1::text`,
    [order_id],
  );

/** Claims that share a slot, and slots on sale that a claim holds: none, ever. */
export const soldTwice = (session: Session) =>
  session.value<number>(
    `select count(*)::int from (
       select from public.claims where freed_at is null group by slot_id having count(*) > 1
       union all
       select from public.claims c join public.inventory_slots s on s.id = c.slot_id
       where c.freed_at is null and s.status = 'AVAILABLE'
     ) wrong`,
  );
