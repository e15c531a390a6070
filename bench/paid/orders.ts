// Pools with payment, orders that are held in them, and payments that were told, all made in the databases.

import { randomUUID } from 'node:crypto';
import { HEALTHY, type HeldOrder } from '../neighbours/healthy.ts';
import type { Place } from '../neighbours/neighbour.ts';

export const PRICE = 1_000;
/** The longest that a pool may have: none ends while it is measured. */
const HOLD_SEC = 86_400;
const AT_ONCE = 500;

/** The endpoint of the healthy one is the first of its provider, and so its tenant is the provider. */
const TENANT = 'stripe';

export async function addPaidPool({ db1 }: Place, pool: string, slots: number): Promise<void> {
  await db1.ask(
    `insert into public.engine_config (pool_id, confirm_by, price, currency, payment_tenant, hold_sec)
     values ($1, 'payment', $2, 'eur', $3, $4)`,
    [pool, PRICE, TENANT, HOLD_SEC],
  );
  await db1.ask(
    'insert into public.inventory_slots (pool_id) select $1 from pg_catalog.generate_series(1, $2::int)',
    [pool, slots],
  );
}

export async function holdOrders({ db1 }: Place, pool: string, count: number): Promise<HeldOrder[]> {
  const held: HeldOrder[] = [];
  while (held.length < count) {
    const users = Array.from({ length: Math.min(AT_ONCE, count - held.length) }, () => randomUUID());
    const rows = await db1.rows<{ ordinal: number; outcome: string; claim_id: string }>(
      'public.claim_batch',
      {
        p_pool_ids: users.map(() => pool),
        p_user_ids: users,
        p_request_ids: users,
        p_verified: users.map(() => true),
      },
    );
    for (const { ordinal, outcome, claim_id } of rows) {
      if (outcome !== 'claimed') throw new Error(`an order was not held: ${outcome}`);
      held.push({ claimId: claim_id, userId: users[ordinal - 1] ?? '', amount: PRICE });
    }
  }
  return held;
}

/** The payments are known and have had their effect: what is left is to decide what each is for. */
export async function tellPayments({ db2 }: Place, orders: readonly HeldOrder[]): Promise<void> {
  for (let at = 0; at < orders.length; at += AT_ONCE) {
    const some = orders.slice(at, at + AT_ONCE).map(({ claimId, userId, amount }) => {
      const id = randomUUID().replaceAll('-', '');
      const object = {
        ...{ id: `pi_${id}`, object: 'payment_intent', amount, amount_received: amount, currency: 'eur' },
        metadata: { claim_id: claimId, user_id: userId, verified: 'true' },
      };
      const type = 'payment_intent.succeeded';
      return { id: `evt_${id}`, object: 'event', type, livemode: true, data: { object } };
    });
    await db2.ask(
      `select count(*) from webhook.record_events(
         array(select e.webhook_id from public.webhook_endpoints e cross join generate_series(1, cardinality($1::text[])) where e.name = $4),
         $1, $2, array_fill(now(), array[cardinality($1::text[])]), $3, null, null, $3, null, null, null)`,
      [
        some.map(({ id }) => id),
        some.map(({ type }) => type),
        some.map((event) => JSON.stringify(event)),
        HEALTHY,
      ],
    );
  }
  await db2.ask(
    `select count(*) from public.webhook_events e cross join lateral webhook.process_event(e.id) p where e.status = 'pending'`,
  );
}
