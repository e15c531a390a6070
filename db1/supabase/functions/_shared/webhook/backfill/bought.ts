// Payments that bought seats, beside Stripe's books: one that Stripe does not have was not told by Stripe. The ledger believes
// every event that the secret of its endpoint has signed, so this is how a secret that leaked is found out.

import { PAGE_ROWS, pages } from '../../reconcile.ts';
import type { SettledRow } from '../../reconcile_orders.ts';
import { type Ask, SourceError } from './ask.ts';
import { accountsOf } from './stripe.ts';

export interface BoughtDifference {
  readonly kind: 'payment_unknown';
  readonly payment: string;
  readonly detail: string;
}

export interface BoughtPorts {
  readonly ask: Ask;
  readonly tenant: string;
  readonly settled: (after: string | null, limit: number) => Promise<SettledRow[]>;
  /** Payments that Stripe's lists have shown. */
  readonly seen: ReadonlySet<string>;
  /** How many payments have been compared so far. */
  readonly onProgress: (compared: number) => void;
}

/** With the key of another mode Stripe says so, and the payment is there. */
const OTHER_MODE = /similar object exists in (live|test) mode/;

/** Every payment that the ledger settled since then as one that buys, and that Stripe does not have. */
export async function findUnknownPayments(
  ports: BoughtPorts,
  since: Date,
  accounts: readonly string[],
): Promise<BoughtDifference[]> {
  const { tenant, settled, seen, onProgress } = ports;
  const found: BoughtDifference[] = [];
  let compared = 0;
  for await (const row of pages((after: SettledRow | undefined) => settled(after?.id ?? null, PAGE_ROWS))) {
    const [owner, payment = ''] = splitKey(row.payment_key);
    if (owner !== tenant || row.decision !== 'funds' || Date.parse(row.settled_at) < since.getTime())
      continue;
    onProgress(++compared);
    if (seen.has(payment) || (await isKnown(payment, ports.ask, accounts))) continue;
    found.push({
      kind: 'payment_unknown',
      payment,
      detail: `it bought order ${row.order_id}, and Stripe does not have it`,
    });
  }
  return found;
}

function splitKey(key: string): [tenant: string, payment?: string] {
  const at = key.lastIndexOf('/');
  return [key.slice(0, at), key.slice(at + 1)];
}

/** Asked one by one: those before the stretch of the lists, and those that are not there. */
async function isKnown(payment: string, ask: Ask, accounts: readonly string[]): Promise<boolean> {
  const list = payment.startsWith('pi_') ? 'payment_intents' : 'charges';
  for (const account of accountsOf(accounts))
    try {
      await ask(
        `/v1/${list}/${encodeURIComponent(payment)}`,
        account === undefined ? {} : { 'stripe-account': account },
      );
      return true;
    } catch (error) {
      if (!(error instanceof SourceError) || error.status !== 404) throw error;
      if (OTHER_MODE.test(error.message)) return true;
    }
  return false;
}
