// What the API answers with, where the core does not already say so.

export type { ClaimRecord } from '../../db1/supabase/functions/_shared/claim.ts';
export type { AuditRow } from '../../db1/supabase/functions/_shared/console/audit.ts';
export type { TimelineEvent } from '../../db1/supabase/functions/_shared/console/claims.ts';
export type { HealthCheck } from '../../db1/supabase/functions/_shared/console/health.ts';
export type { PoolView } from '../../db1/supabase/functions/_shared/console/pools.ts';
export type { LiveSample, PoolLevel } from '../../db1/supabase/functions/_shared/console/sample.ts';
export type { DeadLetter, DlqResult } from '../../db1/supabase/functions/_shared/dlq.ts';

export interface EndpointRow {
  readonly webhook_id: string;
  readonly name: string;
  readonly provider: string;
  readonly mode: string;
  readonly secret_names: readonly string[];
  readonly max_attempts: number;
  readonly is_active: boolean;
  readonly created_at: string;
}

export const EVENT_STATUSES = [
  'pending',
  'processing',
  'success',
  'skipped',
  'failed',
  'dead_letter',
] as const;
export type EventStatus = (typeof EVENT_STATUSES)[number];

export interface EventRow {
  readonly id: string;
  readonly webhook_id: string;
  readonly name: string | null;
  readonly provider: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly status: EventStatus;
  readonly attempts: number;
  readonly takeovers: number;
  readonly error: string | null;
  readonly occurred_at: string | null;
  readonly received_at: string;
  readonly processed_at: string | null;
  readonly last_attempt_at: string | null;
  readonly next_attempt_at: string | null;
  readonly skipped_by: string | null;
}

export interface EventAlarm {
  readonly at: string;
  readonly kind?: string;
  readonly body: string | null;
}

export interface EventDetails extends EventRow {
  readonly payload: unknown;
  readonly signature: string | null;
  readonly payload_hash: string | null;
  readonly idempotency_key: string | null;
  readonly lease_until: string | null;
  /** In base64; null where it was pruned. */
  readonly raw_body: string | null;
  readonly alarms: readonly EventAlarm[];
}

export interface EventResult {
  readonly id: string;
  readonly outcome: string;
}

export interface CallRow {
  readonly id: string;
  readonly site_id: string;
  readonly event_id: string | null;
  readonly kind: string;
  readonly occurred_at: string;
  readonly received_at: string;
  readonly is_signed: boolean;
}
