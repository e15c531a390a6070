// Compares what the ledger knows of payments with the intake's decisions. An intake that was restored from a backup has lost some.

import { type Difference, PAGE_ROWS, pages } from './reconcile.ts';

/** A row of public.settled_payments: a payment whose decision the ledger knows, or that it could not have decided (`dead_letter`). */
export interface SettledRow {
  /** Of the outbox. */
  readonly id: string;
  readonly payment_key: string;
  readonly order_id: string;
  readonly decision: string;
  /** Of a dead letter: why the intake could not be told. */
  readonly error: string | null;
  /** When it was told. */
  readonly settled_at: string;
  /** What it bought. */
  readonly claim_ids: readonly string[];
}

export interface PaymentReconcilePorts {
  settled(after: string | null, limit: number): Promise<SettledRow[]>;
  /** Those of the payments that the intake has a decision for. */
  decided(paymentKeys: readonly string[]): Promise<string[]>;
}

/** Every payment that the ledger calls settled and the intake has not decided about. */
export async function findUnsettledPayments(ports: PaymentReconcilePorts): Promise<Difference[]> {
  const found: Difference[] = [];
  let page: SettledRow[] = [];
  const rows = pages((after: SettledRow | undefined) => ports.settled(after?.id ?? null, PAGE_ROWS));
  for await (const row of rows) {
    page.push(row);
    if (page.length < PAGE_ROWS) continue;
    found.push(...(await undecided(page, ports)));
    page = [];
  }
  found.push(...(await undecided(page, ports)));
  return found;
}

/** The intake decides before the ledger knows, so one look at it afterwards is enough. */
async function undecided(page: readonly SettledRow[], ports: PaymentReconcilePorts): Promise<Difference[]> {
  if (page.length === 0) return [];
  const known = new Set(await ports.decided(page.map(({ payment_key }) => payment_key)));
  return page
    .filter(({ payment_key }) => !known.has(payment_key))
    .map(({ id, payment_key, decision, error, claim_ids }) => ({
      kind: 'payment_unsettled',
      slot_id: null,
      pool_id: '-',
      payment_key,
      outbox_id: id,
      claim_ids,
      detail:
        decision === 'dead_letter'
          ? `the intake could not be told: ${error}`
          : `decided as ${decision} in the ledger, undecided in the intake`,
      ticket: null,
    }));
}
