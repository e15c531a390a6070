// Paid orders behind the Edge Function: both databases over PostgREST, one cell, and Stripe by its own package.

import type { CallFunction } from '../call_function.ts';
import { Closer } from '../orders/closer.ts';
import { Courier } from '../orders/courier.ts';
import { createPaymentsOf } from '../orders/keys.ts';
import { oneCell, type PaymentsOf } from '../orders/ports.ts';
import { Refunder } from '../orders/refunder.ts';
import { type StripeClient, type StripeOptions, stripeOptions } from '../orders/stripe.ts';
import { type Log, NO_METRICS } from '../ports.ts';
import type { SecretSource } from '../webhook/secrets.ts';
import type { BridgeWorkerPorts } from './bridge_worker.ts';

export type OpenStripe = (key: string, options: StripeOptions) => Promise<StripeClient>;

/** `webhook` calls functions of that schema of DB2. */
export function edgePayments(
  webhook: CallFunction,
  env: SecretSource,
  open: OpenStripe,
  log: Log,
): PaymentsOf {
  return createPaymentsOf({
    webhook,
    secretOf: env,
    open: (key) => open(key, stripeOptions({ STRIPE_API_URL: env('STRIPE_API_URL') })),
    log,
    now: Date.now,
  });
}

/** `db2` gives what calls functions of that schema of DB2. */
export function orderPorts(
  db1: CallFunction,
  db2: (schema: string) => CallFunction,
  env: SecretSource,
  open: OpenStripe,
  log: Log,
): Pick<BridgeWorkerPorts, 'orders'> {
  const shared = { metrics: NO_METRICS, log, now: Date.now };
  const paymentsOf = edgePayments(db2('webhook'), env, open, log);
  const ledger = db2('public');
  return {
    orders: () => [
      new Closer({ ...shared, db1, db2: ledger, paymentsOf }),
      new Courier({ ...shared, db2: ledger, cells: oneCell(db1) }),
      new Refunder({ ...shared, db2: ledger, paymentsOf }),
    ],
  };
}
