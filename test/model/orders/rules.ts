// The two pools of a history, what they ask for, and who plays the operator.

import type { Side } from '../lanes.ts';

export const PAY_POOL = 'pay';
export const AUTO_POOL = 'auto';
export const UNIT_PRICE = 10;
export const HOLD_SEC = 240;
export const ACTOR = 'ada';
const CURRENCY = 'eur';
const QUANTITY_MAX = 2;
export type Rules = {
  slots: number;
  maxPerUser: number | null;
  graceSec: number;
  /** By how much Stripe's clock is ahead. */
  skewSec: number;
  /** Tickets that are bought before anything else happens, and whether the bridge has carried them. */
  bought: 'none' | 'held' | 'queued' | 'carried';
  /** Who sends back what bought nothing. */
  refundBy: 'sluice' | 'operator';
  /** Which event of a refund in the dashboard the endpoint always gets in the end. Where each tells what the other lost, none knows all. */
  toldBy: 'charge' | 'refund';
};

export const NO_RULES: Rules = {
  slots: 0,
  maxPerUser: null,
  graceSec: 0,
  skewSec: 0,
  bought: 'none',
  refundBy: 'sluice',
  toldBy: 'charge',
};

/** One pool that is paid for, and one that is not. They have no slots yet. */
export async function addPools(db1: Side, rules: Rules): Promise<void> {
  await db1.rows(
    `insert into public.engine_config (pool_id, confirm_by, price, currency, payment_tenant, hold_sec, max_per_user, max_quantity,
       expire_grace_sec, refund_by)
     values ($1, 'payment', $2, $3, 'stripe', $4, $5, $6, $7, $8), ($9, 'auto', null, null, null, null, null, 1, 60, 'sluice')`,
    [
      ...[PAY_POOL, UNIT_PRICE, CURRENCY, HOLD_SEC, rules.maxPerUser, QUANTITY_MAX, rules.graceSec],
      ...[rules.refundBy, AUTO_POOL],
    ],
  );
}
