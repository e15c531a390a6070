// Bugs of paid orders, as they would come back.

import type { Bug } from '../bugs.ts';
import { CORE } from '../parts.ts';

export const ORDERS: readonly Bug[] = [
  {
    name: 'paid-between-two-looks',
    was: 'a payment between two looks of the closer was closed as expired',
    file: `${CORE}/orders/closer.ts`,
    from: "standing === 'paid' ? 'complete' : standing",
    to: "standing === 'paid' ? 'expired' : standing",
    test: 'test/orders/closer.test.ts',
    finds: 'is complete where its payment was made between the two answers',
  },
  {
    name: 'long-pause',
    was: 'sessions and refunds waited up to an hour after Stripe was back',
    file: `${CORE}/orders/lane.ts`,
    from: 'const OUTAGE_PAUSE_SEC = 15;',
    to: 'const OUTAGE_PAUSE_SEC = 3_600;',
    test: 'test/orders/closer.test.ts',
    finds: 'is tried again within 15 s where Stripe was away, however often it was',
  },
  {
    name: 'checkout-twice',
    was: 'a checkout counted twice against the limit of its address',
    file: `${CORE}/claim_owner.ts`,
    from: 'if (isBuyer) await ports.admit?.(request, 1);',
    to: 'if (isBuyer) await ports.admit?.(request, 2);',
    test: 'test/orders/checkout.test.ts',
    finds: 'counts once against the limit of its address',
  },
  {
    name: 'refund-twice',
    was: 'a restored ledger sent a refund again that Stripe had, once Stripe had forgotten its key',
    file: `${CORE}/orders/refunder.ts`,
    from: 'const known = await findOwn(due, payments);',
    to: 'const known = due.tries > 1 ? await findOwn(due, payments) : undefined;',
    test: 'test/orders/refunds.test.ts',
    finds: 'are not sent again by a ledger that was restored to a moment before it sent them',
  },
  {
    name: 'buys-again',
    was: 'a restored intake gave seats for a payment that had gone back',
    file: 'db1/supabase/migrations/20260224100017_orders.sql',
    from: "    when p_fact ->> 'was' in ('refund', 'void') then 'went_back'\n",
    to: '',
    test: 'db1/supabase/tests/order/went_back.test.sql',
    finds: 'and buys nothing, though its claim is held',
  },
  {
    name: 'void-refused',
    was: 'a ticket that a restored ledger had again could not be voided',
    file: `${CORE}/console/void_claims.ts`,
    from: 'isBack ? WOULD : outcomeFor(claim)',
    to: 'outcomeFor(claim)',
    test: 'test/orders/api.test.ts',
    finds: 'void a ticket again that a ledger restored to a moment before the void has again',
  },
  {
    name: 'order-forgotten',
    was: 'a ticket that a restored intake had forgotten came back without its order',
    file: 'db1/supabase/migrations/20260224100009_reconcile.sql',
    from: "  perform intake.restore_order(v_claim_id, p_ticket -> 'purchase');\n",
    to: '',
    test: 'db1/supabase/tests/order/restored.test.sql',
    finds: 'the order is there, and paid',
  },
  {
    name: 'settles-later',
    was: 'workers ended the holds of a restored intake before their payments were decided again',
    file: 'src/commands/reconcile.ts',
    from: '  await settle();\n',
    to: '',
    test: 'test/orders/reconcile.test.ts',
    finds: 'has a payment decided again before a worker can end the hold, which is over',
  },
];
