// The healthy one: what it is told, and what it reports. It is a process of its own (healthy_client.ts).

/**
 * `claims` until 201, `tickets` until the ledger has it, `events` until 2xx, `effects` until the event is a success, `orders` from the
 * event that tells of their payment until the ledger has the ticket.
 */
export type HealthyKind = 'claims' | 'tickets' | 'events' | 'effects' | 'orders';
export type HeldOrder = { claimId: string; userId: string; amount: number };
export type HealthyOrder = {
  kind: HealthyKind;
  port: number;
  db2Url: string;
  count: number;
  perSec: number;
  /** What takes longer has failed. */
  patienceMs: number;
  /** Of the claims; the healthy one's where it is left out. */
  pool?: string;
  /** Each claim has a secret of its own. */
  hasSecrets?: boolean;
  /** What is paid for, one after the other: as many as `count`. */
  orders?: readonly HeldOrder[];
};
/** `failures`: how many of each kind. Failed requests are in `tookMs` too, with how long they waited. */
export type HealthyReport = { tookMs: number[]; failures: Record<string, number> };

export const HEALTHY = 'healthy';
export const HEALTHY_ENV = { STRIPE_WEBHOOK_SECRET: 'whsec_bench_of_the_healthy' };
