// What the server's doors need of paid orders: the checkout, and whether what is owed was refunded.

import type { CallFunction } from '#core/call_function.ts';
import type { ClaimPorts } from '#core/claim.ts';
import { isSettled, type RefundRow } from '#core/console/order_shapes.ts';
import { canWait } from '#core/failure.ts';
import { type CheckoutPorts, checkoutRoute, createCheckoutStore } from '#core/orders/checkout.ts';
import type { Log, Metrics } from '#core/ports.ts';
import type { Route } from '#core/router.ts';
import type { ApiUrls } from '#core/webhook/backfill/sources.ts';
import type { SecretSource } from '#core/webhook/secrets.ts';
import type { ServerCell } from '../fleet/cells.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { openPayments } from './stripe.ts';

export interface CheckoutDoor extends Pick<CheckoutPorts, 'own' | 'publicUrl'> {
  fleet: Fleet<ServerCell>;
  /** Functions of schema webhook of DB2. */
  webhook: CallFunction;
  secretOf: SecretSource;
  urls: ApiUrls;
  metrics: Metrics;
  log: Log;
}

export function openCheckout(door: CheckoutDoor): Route {
  const { fleet, webhook, secretOf, urls, ...ports } = door;
  return checkoutRoute({
    ...ports,
    store: createCheckoutStore(
      (claimId, ask) => fleet.onClaim(claimId, ({ call }) => ask(call)),
      (hex) => Buffer.from(hex, 'hex'),
    ),
    paymentsOf: openPayments(webhook, secretOf, urls, ports.log),
  });
}

/** DB1 knows that a payment is to be refunded, and DB2 whether it was. While DB2 is away, DB1's word stands. */
export function withRefunds<Ports extends Pick<ClaimPorts, 'getClaim'>>(
  ports: Ports,
  ledger: CallFunction,
  log: Log,
): Ports {
  return {
    ...ports,
    async getClaim(claimId, secretHash) {
      const claim = await ports.getClaim(claimId, secretHash);
      if (claim?.order?.status !== 'refund_due') return claim;
      try {
        const refunds = await ledger<RefundRow>('order_refunds', { p_order_id: claim.order.order_id });
        return isSettled(refunds) ? { ...claim, order: { ...claim.order, status: 'refunded' } } : claim;
      } catch (error) {
        if (!canWait(error)) throw error;
        log.debug('DB2 is away: whether it was refunded is not known', { cause: error });
        return claim;
      }
    },
  };
}
