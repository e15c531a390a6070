// Compares what the ledger knows of orders with the intake: voids that were not finished there, decisions that it has lost.
// Both are left behind by an intake that was restored from a backup. As elsewhere, only what two looks agree on is a difference.

import { type Difference, PAGE_ROWS, pages } from './reconcile.ts';

/** A row of public.voids_page: a tombstone of a void that the courier calls finished. */
export interface VoidRow {
  readonly claim_id: string;
  readonly slot_id: string;
  readonly pool_id: string;
}

/** A row of public.live_claims. */
export interface LiveClaim {
  readonly claim_id: string;
  readonly state: string;
}

/** A row of public.settled_page: a payment whose decision the ledger knows. */
export interface SettledRow {
  /** Of the outbox. */
  readonly id: string;
  readonly payment_key: string;
  readonly pool_id: string | null;
  readonly decision: string;
}

export interface OrderReconcilePorts {
  voids(after: string | null, limit: number): Promise<VoidRow[]>;
  /** Those of the claims that the intake has not ended. */
  liveClaims(claimIds: readonly string[]): Promise<LiveClaim[]>;
  settled(after: string | null, limit: number): Promise<SettledRow[]>;
  /** Those of the payments that the intake has a decision for. */
  decided(paymentKeys: readonly string[]): Promise<string[]>;
}

export async function findOrderDifferences(ports: OrderReconcilePorts): Promise<Difference[]> {
  return [...(await unfinishedVoids(ports)), ...(await unsettledPayments(ports))];
}

async function unfinishedVoids({ voids, liveClaims }: OrderReconcilePorts): Promise<Difference[]> {
  const found: Difference[] = [];
  for await (const row of inPages((after: VoidRow | undefined) =>
    voids(after?.claim_id ?? null, PAGE_ROWS),
  )) {
    const live = await twice(
      row.map(({ claim_id }) => claim_id),
      async (ids) => (await liveClaims(ids)).map(({ claim_id, state }) => [claim_id, state] as const),
    );
    for (const { claim_id, slot_id, pool_id } of row) {
      const state = live.get(claim_id);
      if (state === undefined) continue;
      const detail = `claim ${claim_id} is void in the ledger and ${state} in the intake`;
      found.push({ kind: 'void_unfinished', slot_id, pool_id, detail, ticket: { claim_id } });
    }
  }
  return found;
}

async function unsettledPayments({ settled, decided }: OrderReconcilePorts): Promise<Difference[]> {
  const found: Difference[] = [];
  for await (const row of inPages((after: SettledRow | undefined) => settled(after?.id ?? null, PAGE_ROWS))) {
    const keys = row.map(({ payment_key }) => payment_key);
    const missing = await twice(keys, async (some) => {
      const known = new Set(await decided(some));
      return some.filter((key) => !known.has(key)).map((key) => [key, true] as const);
    });
    for (const { id, payment_key, pool_id, decision } of row)
      if (missing.has(payment_key))
        found.push({
          kind: 'payment_unsettled',
          slot_id: null,
          payment_key,
          outbox_id: id,
          pool_id: pool_id ?? '-',
          detail: `decided as ${decision} in the ledger, undecided in the intake`,
          ticket: null,
        });
  }
  return found;
}

/** What the second look, at the suspects of the first, says of them. */
async function twice<Found>(
  ids: readonly string[],
  look: (ids: readonly string[]) => Promise<(readonly [string, Found])[]>,
): Promise<Map<string, Found>> {
  const suspects = (await look(ids)).map(([id]) => id);
  return new Map(suspects.length === 0 ? [] : await look(suspects));
}

async function* inPages<Row>(read: (after: Row | undefined) => Promise<Row[]>): AsyncGenerator<Row[]> {
  let page: Row[] = [];
  for await (const row of pages(read)) {
    page.push(row);
    if (page.length < PAGE_ROWS) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}
