// What the API takes and answers, as the core says.

import type { EventStatus } from '../../db1/supabase/functions/_shared/webhook/ports.ts';

export type { SiteView } from '../../db1/supabase/functions/_shared/calls/operators.ts';
export type { ClaimRecord } from '../../db1/supabase/functions/_shared/claim.ts';
export type { AuditRow } from '../../db1/supabase/functions/_shared/console/audit.ts';
export type { CallDetails, CallRow } from '../../db1/supabase/functions/_shared/console/calls.ts';
export type { TimelineEvent } from '../../db1/supabase/functions/_shared/console/claims.ts';
export type { HealthCheck } from '../../db1/supabase/functions/_shared/console/health.ts';
export type { Issue, IssueResult } from '../../db1/supabase/functions/_shared/console/issues.ts';
export type { Mark } from '../../db1/supabase/functions/_shared/console/marks.ts';
export type { OperatorKey, OperatorView } from '../../db1/supabase/functions/_shared/console/operators.ts';
export type {
  OrderClaim,
  OrderRow,
  OrderView,
  RefundRow,
} from '../../db1/supabase/functions/_shared/console/order_shapes.ts';
export type {
  CreditRow,
  PaymentRow,
  PaymentView,
} from '../../db1/supabase/functions/_shared/console/payments.ts';
export type { PoolView } from '../../db1/supabase/functions/_shared/console/pools.ts';
export type { RefundResult } from '../../db1/supabase/functions/_shared/console/refunds.ts';
export type { LiveSample, PoolLevel, Trouble } from '../../db1/supabase/functions/_shared/console/sample.ts';
export type { TicketRow, TicketView } from '../../db1/supabase/functions/_shared/console/tickets.ts';
export type { VoidResult } from '../../db1/supabase/functions/_shared/console/void_claims.ts';
export type { DeadLetter, DeadLetterResult } from '../../db1/supabase/functions/_shared/dead_letters.ts';
export type { InboxResult, InboxRow } from '../../db1/supabase/functions/_shared/inbox/operators.ts';
export type { PoolDetails } from '../../db1/supabase/functions/_shared/pool.ts';
export type { Total } from '../../db1/supabase/functions/_shared/search/lists.ts';
export type { Found, Kind, SearchAnswer } from '../../db1/supabase/functions/_shared/search/search.ts';
export type { UserSummary } from '../../db1/supabase/functions/_shared/users/summary.ts';
export type {
  EndpointRow,
  EventDetails,
  EventLinks,
  EventResult,
  EventRow,
} from '../../db1/supabase/functions/_shared/webhook/operators.ts';
export type { UnnamedPayment } from '../../db1/supabase/functions/_shared/webhook/unnamed_payments.ts';

export const EVENT_STATUSES = [
  'pending',
  'processing',
  'success',
  'skipped',
  'failed',
  'dead_letter',
] as const satisfies readonly EventStatus[];

/** Who can deliver webhooks. The server knows how each signs; here are the names, without the code. */
export const PROVIDERS = [
  'stripe',
  'twilio',
  'whatsapp',
  'daily',
  'github',
  'shopify',
  'slack',
  'standard',
  'hmac',
] as const;
