// What an export holds of each database. A test compares both lists with the catalog: a new table has to be in one of them.

import type { SideName } from '../migrate/sides.ts';

export interface CarriedTable {
  /** Its name in the file, which stays when the table is renamed. */
  readonly name: string;
  /** Where it stands, today's place first, then the places of earlier versions. */
  readonly homes: readonly string[];
  /** Rows that can be megabytes: fewer of them are read at a time. */
  readonly isWide?: true;
  /** Which rows `npm start` or the seed put into a new database: they do not make it one that is in use. */
  readonly furniture?: string;
  /** The furniture that the file does not replace stays. */
  readonly keepsFurniture?: true;
  /** Which column of it the database fills anew, because what it held may be another's in the file. */
  readonly filledAnew?: string;
  /**
   * What rows mean that come from a version without these columns, in SQL, with the row as `v`, all texts. `first` runs in
   * the same statement, over the same rows. `instead` is for columns that such a version has and means something else by.
   */
  readonly absent?: {
    readonly columns: Readonly<Record<string, string>>;
    readonly first?: string;
    readonly instead?: Readonly<Record<string, string>>;
  };
}

const TENANT_BEFORE_TENANTS = `case when v.provider in ('hmac', 'standard') then v.provider || ':' || v.name else v.provider end`;
/** What the seed and processes that register handlers leave in the audit log. */
const NOTED = `action = 'rule_change'`;
const SEEDED = `pool_id = 'demo_concert_2026'`;
const startAdded = (what: string, column: string): string =>
  `exists (select from audit.audit_logs a where a.actor = 'npm start' and a.subject = '${what} ' || ${column})`;

/**
 * In the order in which they are loaded: hosts before the pools whose addresses name them, pools before their messages, tenants
 * before their endpoints.
 */
export const TABLES: Readonly<Record<SideName, readonly CarriedTable[]>> = {
  db1: [
    { name: 'hook_allowed_hosts', homes: ['intake.hook_allowed_hosts', 'intake.webhook_allowed_hosts'] },
    { name: 'engine_config', homes: ['public.engine_config'], furniture: SEEDED },
    { name: 'pool_requests', homes: ['intake.pool_requests'] },
    { name: 'slot_manifest', homes: ['public.slot_manifest'], furniture: SEEDED },
    {
      name: 'claims',
      homes: ['public.claims'],
      // Claims had no secrets then.
      absent: {
        columns: {
          request_key: `case when v.request_id is not null
            then intake.request_key(v.pool_id, v.request_id, v.user_id, v.verified::boolean, null) end`,
        },
      },
    },
    { name: 'pool_details', homes: ['public.pool_details'] },
    { name: 'orders', homes: ['public.orders'] },
    { name: 'order_payments', homes: ['public.order_payments'] },
    { name: 'checkouts', homes: ['public.checkouts'] },
    { name: 'messages', homes: ['pgmq.q_intake_queue'] },
    { name: 'dead_letters', homes: ['pgmq.q_intake_dlq'] },
    { name: 'archived_messages', homes: ['pgmq.a_intake_queue'] },
    { name: 'archived_dead_letters', homes: ['pgmq.a_intake_dlq'] },
    { name: 'inbox', homes: ['pgmq.q_event_inbox'], isWide: true },
    { name: 'inbox_dead_letters', homes: ['pgmq.q_event_inbox_dlq'], isWide: true },
    { name: 'archived_inbox', homes: ['pgmq.a_event_inbox'], isWide: true },
    { name: 'archived_inbox_dead_letters', homes: ['pgmq.a_event_inbox_dlq'], isWide: true },
    { name: 'cells', homes: ['intake.cells'] },
    { name: 'pool_places', homes: ['intake.pool_places'] },
    { name: 'parcels', homes: ['intake.parcels'], isWide: true },
    { name: 'ended_sessions', homes: ['intake.ended_sessions'], furniture: 'true', keepsFurniture: true },
    { name: 'operators', homes: ['audit.operators'] },
    { name: 'user_keys', homes: ['audit.user_keys'] },
    { name: 'retention', homes: ['audit.retention'], furniture: 'true', keepsFurniture: true },
    { name: 'audit_logs', homes: ['audit.audit_logs'], furniture: NOTED },
  ],
  db2: [
    {
      name: 'secret_names',
      homes: ['webhook.secret_names'],
      furniture: 'true',
      keepsFurniture: true,
    },
    { name: 'webhook_tenants', homes: ['webhook.tenants'], furniture: 'true' },
    {
      name: 'webhook_endpoints',
      homes: ['public.webhook_endpoints'],
      furniture: startAdded('webhook endpoint', 'name'),
      keepsFurniture: true,
      filledAnew: 'tenant',
      // All endpoints of a provider shared one tenant, and took test events as well.
      absent: {
        columns: { tenant: TENANT_BEFORE_TENANTS, livemode: `'both'` },
        first: `insert into webhook.tenants (tenant) select distinct ${TENANT_BEFORE_TENANTS} from v on conflict do nothing`,
      },
    },
    {
      name: 'call_sites',
      homes: ['public.call_sites'],
      furniture: startAdded('call site', 'site_id'),
      keepsFurniture: true,
    },
    { name: 'confirmed_tickets', homes: ['public.confirmed_tickets'] },
    { name: 'voided_tickets', homes: ['public.voided_tickets'] },
    { name: 'erased_claims', homes: ['public.erased_claims'] },
    { name: 'webhook_bodies', homes: ['public.webhook_bodies'], isWide: true },
    { name: 'webhook_events', homes: ['public.webhook_events'], isWide: true },
    { name: 'webhook_replies', homes: ['webhook.replies'], isWide: true },
    { name: 'webhook_alarms', homes: ['public.webhook_alarms'], isWide: true },
    { name: 'webhook_side_effects', homes: ['public.webhook_side_effects'], isWide: true },
    {
      name: 'payments',
      homes: ['public.payments'],
      // The total of refunds had the rest of a hold in it.
      absent: {
        columns: { adopted: '0' },
        instead: {
          refund_told: 'greatest(0, v.refund_told::bigint - greatest(0, v.held::bigint - v.amount::bigint))',
        },
      },
    },
    { name: 'payment_refunds', homes: ['public.payment_refunds'] },
    { name: 'payment_transactions', homes: ['public.payment_transactions'] },
    { name: 'credit_ledger', homes: ['public.credit_ledger'] },
    { name: 'claim_outbox', homes: ['public.claim_outbox'] },
    { name: 'refunds_due', homes: ['public.refunds_due'] },
    { name: 'ticket_uses', homes: ['public.ticket_uses'] },
    { name: 'calls', homes: ['public.calls'], isWide: true },
    { name: 'user_keys', homes: ['audit.user_keys'] },
    { name: 'retention', homes: ['audit.retention'], furniture: 'true', keepsFurniture: true },
    {
      name: 'audit_logs',
      homes: ['audit.audit_logs'],
      furniture: `actor = 'npm start' or ${NOTED}`,
      keepsFurniture: true,
    },
  ],
};

/** Their numbers go on above those of the file. */
export const SEQUENCES: Readonly<Record<SideName, readonly string[]>> = {
  db1: [
    'audit.audit_logs_id_seq',
    'intake.sale_order_seq',
    'pgmq.q_event_inbox_dlq_msg_id_seq',
    'pgmq.q_event_inbox_msg_id_seq',
    'pgmq.q_intake_dlq_msg_id_seq',
    'pgmq.q_intake_queue_msg_id_seq',
    'public.engine_config_lane_seq',
  ],
  db2: [
    'audit.audit_logs_id_seq',
    'public.credit_ledger_id_seq',
    'public.webhook_alarms_id_seq',
    'webhook.arrival_seq',
  ],
};

const LEFT_IN_BOTH = {
  'audit.chain': 'the audit rows are sealed anew, from the same one on (chain_start)',
  'audit.seals': 'as chain',
  'audit.untold': 'empty outside of a transaction',
  'audit.untold_id_seq': 'as untold',
  'audit.erasures': 'an erasure that was cut short is begun anew',
  'audit.personal_places': 'the migrations fill it; rows of your own are added again',
  'audit.samples': 'what the console remembers; it begins anew',
  'audit.minute_samples': 'as samples',
  'audit.sampler': 'as samples',
  'audit.marks': 'as samples',
  'audit.marks_id_seq': 'as samples',
  'audit.issues': 'found anew from what has failed',
  'audit.alerts': 'as issues',
  'audit.alerts_id_seq': 'as issues',
};

/** What stays behind, and why. */
export const LEFT_BEHIND: Readonly<Record<SideName, Readonly<Record<string, string>>>> = {
  db1: {
    'public.inventory_slots': 'a cache: rebuilt from slot_manifest and claims',
    'intake.pool_marks': 'a cache, as inventory_slots',
    'intake.pool_totals': 'counted anew from slot_manifest',
    'intake.free_counts': 'a cache of counts',
    'intake.held_counts': 'as free_counts',
    'intake.pool_allowances': 'the throttle of the current second',
    'intake.copied_doors': 'a copy of what DB2 has: a server makes it anew within seconds',
    'intake.doors_copied': 'as copied_doors',
    'intake.drain_requests': 'the requests of the last hour, which pg_net sent from here',
    ...LEFT_IN_BOTH,
    'public.engine_metrics': 'a history of 30 days for charts; it begins anew',
    'public.engine_metrics_id_seq': 'as engine_metrics',
  },
  db2: {
    ...LEFT_IN_BOTH,
    'audit.operators': "a copy of DB1's",
    'public.payment_rules': 'the migrations fill it',
    'public.webhook_handlers':
      'the migrations fill it, and workers and servers register their TypeScript handlers at each start',
    'webhook.handler_faults': 'as webhook_handlers',
  },
};

/** Columns of earlier files that today's tables do not need. The versions of pgmq differ in two of them. */
export const DROPPED_COLUMNS: ReadonlySet<string> = new Set([
  'operators.version',
  ...[
    'messages',
    'dead_letters',
    'archived_messages',
    'archived_dead_letters',
    'inbox',
    'inbox_dead_letters',
    'archived_inbox',
    'archived_inbox_dead_letters',
  ].flatMap((table) => [`${table}.headers`, `${table}.last_read_at`]),
]);
