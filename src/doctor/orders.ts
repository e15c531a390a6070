// Pools that are paid for: whether their payments can be heard and made, and what waits.

import type { IntakeLook, LedgerLook } from '#core/console/sample.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import type { Secrets } from '#core/webhook/secrets.ts';
import type { Database } from '../db/database.ts';
import { isKeyed } from '../webhook/backfill.ts';
import { type Finding, fail, ok, skip, warn } from './finding.ts';

/** A row of public.paid_pools. */
export interface PaidPool {
  readonly pool_id: string;
  readonly payment_tenant: string;
  readonly payment_livemode: boolean;
}

/** An active endpoint of Stripe. */
export interface PayingEndpoint {
  readonly name: string;
  readonly tenant: string;
  /** live, test or both. */
  readonly livemode: string;
  /** Whether this command finds a key to ask Stripe with. */
  readonly isKeyed: boolean;
}

/** A courier needs about a second. */
const OUTBOX_WARN_SEC = 60;
const SHOWN = 3;

const some = (names: readonly string[]): string =>
  names.length > SHOWN
    ? `${names.slice(0, SHOWN).join(', ')} and ${names.length - SHOWN} more`
    : names.join(', ');

export async function readEndpoints(db2: Database, secrets: Secrets): Promise<PayingEndpoint[]> {
  const store = createOperatorStore((name, args) => db2.call(`webhook.${name}`, args));
  const active = (await store.listEndpoints()).filter((one) => one.provider === 'stripe' && one.is_active);
  return Promise.all(
    active.map(async (one) => ({
      name: one.name,
      tenant: one.tenant,
      livemode: one.livemode,
      isKeyed: await isKeyed(one, secrets),
    })),
  );
}

/** Without an endpoint no payment is heard; without a key no checkout is made, closed or refunded. */
export function judgePaidPools(pools: readonly PaidPool[], endpoints: readonly PayingEndpoint[]): Finding {
  const check = 'paid pools';
  if (pools.length === 0) return skip(check, 'no pool is paid for');
  const ofTenant = ({ payment_tenant }: PaidPool) =>
    endpoints.filter(({ tenant }) => tenant === payment_tenant);
  const told = (wrong: readonly PaidPool[]) =>
    some(wrong.map(({ pool_id, payment_tenant }) => `${pool_id} (${payment_tenant})`));
  const unheard = pools.filter((pool) => ofTenant(pool).length === 0);
  if (unheard.length > 0)
    return fail(
      check,
      `no active endpoint has the tenant of ${told(unheard)}: payments are not heard`,
      '`sluice webhooks endpoints list` has the tenants; `sluice pools set <pool> --payment-tenant NAME`',
    );
  const otherMode = pools.filter((pool) => {
    const mode = pool.payment_livemode ? 'live' : 'test';
    return !ofTenant(pool).some(({ livemode }) => livemode === mode || livemode === 'both');
  });
  if (otherMode.length > 0)
    return fail(
      check,
      `the endpoint takes the other mode than ${told(otherMode)}: payments are not heard`,
      '`sluice webhooks endpoints change <endpoint> --livemode both`, or `sluice pools set <pool> --payment-livemode yes|no`',
    );
  const keyless = pools.filter((pool) => !ofTenant(pool).some((one) => one.isKeyed));
  if (keyless.length > 0)
    return warn(
      check,
      `no key of Stripe is set here for ${told(keyless)}`,
      'set STRIPE_API_KEY where servers and workers run: without it no checkout begins and no refund is sent',
    );
  return ok(check, `${pools.length} with an endpoint and a key each`);
}

export function judgeHolds({ orders }: Pick<IntakeLook, 'orders'>): Finding {
  const { past_bound, past_bound_sec, held, to_close } = orders;
  if (past_bound > 0)
    return fail(
      'holds of orders',
      `${past_bound} hold seats for longer than they may, the oldest by ${past_bound_sec ?? 0} s`,
      '`sluice work` ends them; `sluice orders list --status held` shows them, and --status paying those whose payment takes no effect',
    );
  return ok('holds of orders', `${held} run, ${to_close} sessions to close`);
}

export function judgeMoney({ orders }: Pick<LedgerLook, 'orders'>): Finding[] {
  const { outbox, refunds, braked, decisions } = orders;
  const waits = Object.values(outbox);
  const due = waits.reduce((sum, one) => sum + one.due, 0);
  const age = Math.max(...waits.map(({ oldest_sec }) => oldest_sec));
  const dead = waits.reduce((sum, one) => sum + one.dead_letters, 0);
  const waiting = refunds.review + refunds.failed;
  return [
    ...(dead > 0
      ? [
          fail(
            'payments that cannot be decided',
            `${dead} payments or voids are dead letters: DB1 could not be told`,
            '`sluice orders show <payment>` says why; `sluice reconcile` lists payments, and --fix tries them again',
          ),
        ]
      : []),
    age >= OUTBOX_WARN_SEC
      ? warn(
          'decisions about payments',
          `${due} are missing, the oldest for ${age} s`,
          '`sluice work` asks for them; is DB1, or a cell, away?',
        )
      : ok('decisions about payments', due === 0 ? 'none is missing' : `${due} are on their way`),
    judgeRefunds(waiting, refunds.due, braked),
    ...(decisions.ignored > 0
      ? [
          warn(
            'ignored payments',
            `${decisions.ignored} within an hour name an order of a pool with another tenant or mode`,
            'compare payment_tenant and payment_livemode of the pool with the endpoint; refund them at Stripe',
          ),
        ]
      : []),
  ];
}

function judgeRefunds(waiting: number, due: number, braked: number): Finding {
  const check = 'refunds';
  if (braked > 0)
    return fail(
      check,
      `the brake holds ${braked} of them back`,
      'find out why payments buy nothing, then `sluice refunds send` (docs/paid_tickets.md)',
    );
  if (waiting > 0)
    return warn(check, `${waiting} wait for an operator`, '`sluice refunds list --state review`, and failed');
  return ok(check, due === 0 ? 'none is owed' : `${due} are on their way`);
}
