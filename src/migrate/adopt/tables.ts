// The tables that an existing database may bring, as the requirements describe them: what Sluice needs of each, and what rows
// that were there before mean. A test compares these lists with what the migrations make.

export interface AdoptedColumn {
  readonly name: string;
  /** As format_type writes it. */
  readonly type: string;
  readonly isRequired?: true;
  /** Left out where the migration gives it (from a function or sequence of ours), and where there is none. */
  readonly default?: string;
  /** For rows that have no value: an expression over columns that are listed here. */
  readonly fill?: string;
  /** Columns of the requirement that say the same; the first that is there goes before `fill`. */
  readonly from?: readonly string[];
  readonly isIdentity?: true;
  /** What it holds, for a table that lacks it and has no other value for it. */
  readonly means?: string;
}

/** Columns whose values are unique, where `among` holds. The migrations make the indexes. */
export interface AdoptedKey {
  readonly columns: readonly string[];
  readonly among?: string;
  readonly isIndex?: true;
}

export interface AdoptedTable {
  readonly name: string;
  readonly columns: readonly AdoptedColumn[];
  readonly unique: Readonly<Record<string, AdoptedKey>>;
  readonly checks: Readonly<Record<string, string>>;
  /** Columns of the requirement that its own writers fill and Sluice leaves empty. */
  readonly optional?: readonly string[];
  /** Unique keys, by their columns, that rows of Sluice would break: they go. */
  readonly tooNarrow?: readonly string[];
}

const TIME_ORDERED_ID = `(lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
    || '-7' || substr(gen_random_uuid()::text, 16))::uuid`;
const IS_OPEN = `coalesce(status::text, 'pending') in ('pending', 'failed', 'processing')`;

export const STATUS_TYPE = 'public.webhook_event_status';
export const STATUSES = ['pending', 'processing', 'success', 'skipped', 'failed', 'dead_letter'] as const;

/** What the requirements call them, in small letters. A worker that was at an event is gone after the adoption. */
export const STATUS_OF: Readonly<Record<string, string>> = {
  ...Object.fromEntries(STATUSES.map((status) => [status, status])),
  received: 'pending',
  processing: 'pending',
  processed: 'success',
};

/** Functions of the requirement that have a namesake of ours. */
export const REPLACED_FUNCTIONS = ['webhook.claim_next_event', 'webhook.mark_event_result'] as const;

const EVENTS: AdoptedTable = {
  name: 'public.webhook_events',
  columns: [
    { name: 'id', type: 'uuid', isRequired: true, default: TIME_ORDERED_ID, fill: 'gen_random_uuid()' },
    { name: 'webhook_id', type: 'uuid', isRequired: true, fill: `md5(coalesce(provider, 'unknown'))::uuid` },
    {
      name: 'provider',
      type: 'text',
      isRequired: true,
      default: `'unknown'`,
      // A tenant of its own for each: ids are unique within a webhook only.
      fill: `'unknown' || coalesce(':' || webhook_id, '')`,
    },
    { name: 'event_id', type: 'text', isRequired: true },
    {
      name: 'event_type',
      type: 'text',
      isRequired: true,
      default: `'unknown'`,
      fill: `'unknown'`,
    },
    { name: 'occurred_at', type: 'timestamp with time zone' },
    {
      name: 'received_at',
      type: 'timestamp with time zone',
      isRequired: true,
      default: 'now()',
      fill: 'now()',
    },
    { name: 'processed_at', type: 'timestamp with time zone' },
    { name: 'last_attempt_at', type: 'timestamp with time zone' },
    {
      name: 'next_attempt_at',
      type: 'timestamp with time zone',
      default: 'now()',
      fill: `case when ${IS_OPEN} then now() end`,
    },
    {
      name: 'status',
      type: 'webhook_event_status',
      isRequired: true,
      default: `'pending'`,
      fill: `'pending'`,
    },
    { name: 'lane', type: 'integer', isRequired: true, fill: '0' },
    { name: 'attempts', type: 'integer', isRequired: true, default: '0', fill: '0' },
    { name: 'takeovers', type: 'integer', isRequired: true, default: '0', fill: '0' },
    { name: 'error', type: 'text' },
    { name: 'signature', type: 'text' },
    { name: 'payload', type: 'jsonb' },
    { name: 'payload_hash', type: 'text' },
    { name: 'dedupe_hash', type: 'text' },
    { name: 'raw_body', type: 'bytea' },
    { name: 'body_id', type: 'uuid' },
    { name: 'lease_token', type: 'uuid' },
    { name: 'lease_until', type: 'timestamp with time zone' },
    { name: 'idempotency_key', type: 'text' },
    { name: 'skipped_by', type: 'text' },
    { name: 'waiting_since', type: 'timestamp with time zone' },
    { name: 'arrival', type: 'bigint', isRequired: true, fill: 'row_number() over (order by received_at)' },
    { name: 'backfilled', type: 'boolean', isRequired: true, default: 'false', fill: 'false' },
  ],
  unique: {
    one_event_per_provider_and_id: { columns: ['provider', 'event_id'] },
    webhook_unique_event: { columns: ['webhook_id', 'event_id'] },
  },
  checks: {
    event_id_has_1_to_500_characters: 'length(event_id) between 1 and 500',
    event_type_has_1_to_200_characters: 'length(event_type) between 1 and 200',
  },
};

const SIDE_EFFECTS: AdoptedTable = {
  name: 'public.webhook_side_effects',
  columns: [
    { name: 'id', type: 'uuid', isRequired: true, default: 'gen_random_uuid()', fill: 'gen_random_uuid()' },
    { name: 'provider', type: 'text', isRequired: true, fill: `'unknown'` },
    { name: 'event_id', type: 'text', isRequired: true },
    { name: 'payload', type: 'jsonb' },
    {
      name: 'created_at',
      type: 'timestamp with time zone',
      isRequired: true,
      default: 'now()',
      fill: 'now()',
    },
  ],
  unique: { one_side_effect_per_event: { columns: ['provider', 'event_id'] } },
  checks: {},
};

/** The migration tells the payments of these rows, so that no event credits one again. */
const CREDITS: AdoptedTable = {
  name: 'public.credit_ledger',
  columns: [
    { name: 'id', type: 'bigint', isRequired: true, isIdentity: true },
    {
      name: 'created_at',
      type: 'timestamp with time zone',
      isRequired: true,
      default: 'now()',
      fill: 'now()',
    },
    { name: 'user_id', type: 'text', isRequired: true, means: 'whose money it is' },
    {
      name: 'amount',
      type: 'bigint',
      isRequired: true,
      means: 'minor units (cents), below zero for a debit',
    },
    { name: 'currency', type: 'text', isRequired: true, means: 'three lower-case letters' },
    {
      name: 'kind',
      type: 'text',
      isRequired: true,
      fill: `case when amount < 0 then 'refund' else 'payment' end`,
    },
    { name: 'provider', type: 'text', isRequired: true, means: 'such as stripe' },
    {
      name: 'object_id',
      type: 'text',
      isRequired: true,
      means: 'the payment intent, or the charge without one, by which later events know that it is credited',
    },
    { name: 'event_id', type: 'text', isRequired: true },
    { name: 'business_key', type: 'text', isRequired: true, fill: `'adopted:' || event_id` },
  ],
  unique: {
    one_credit_per_event_and_kind: { columns: ['provider', 'event_id', 'kind'] },
    one_credit_per_fact: { columns: ['provider', 'business_key'] },
  },
  checks: {
    credit_names_its_user: 'length(user_id) between 1 and 200',
    amount_in_range: 'amount between -1000000000000000 and 1000000000000000',
    currency_is_three_letters: `currency ~ '^[a-z]{3}$'`,
  },
  // An event can credit a payment and debit its refund at once.
  tooNarrow: ['provider,event_id', 'event_id'],
};

const CALLS: AdoptedTable = {
  name: 'public.calls',
  columns: [
    { name: 'id', type: 'uuid', isRequired: true, fill: 'gen_random_uuid()' },
    { name: 'site_id', type: 'text', isRequired: true },
    { name: 'event_id', type: 'text' },
    { name: 'kind', type: 'text', isRequired: true, default: `'unknown'`, fill: `'unknown'` },
    { name: 'payload', type: 'jsonb', default: `'{}'`, fill: `'{}'` },
    {
      name: 'occurred_at',
      type: 'timestamp with time zone',
      isRequired: true,
      default: 'now()',
      fill: 'now()',
    },
    {
      name: 'received_at',
      type: 'timestamp with time zone',
      isRequired: true,
      default: 'now()',
      fill: 'now()',
    },
    { name: 'signature_hash', type: 'text' },
  ],
  unique: {
    calls_site_signature_hash_uq: {
      columns: ['site_id', 'signature_hash'],
      among: 'signature_hash is not null',
      isIndex: true,
    },
    calls_site_event_id_uq: {
      columns: ['site_id', 'event_id'],
      among: 'event_id is not null and signature_hash is not null',
      isIndex: true,
    },
  },
  checks: {},
};

const NAMED = { type: 'text', isRequired: true, default: `'unknown'`, fill: `'unknown'` } as const;

/** Writers of the requirement name none of our columns: so all of them have defaults here. */
const AUDIT: AdoptedTable = {
  name: 'audit.audit_logs',
  columns: [
    { name: 'id', type: 'bigint', isRequired: true, isIdentity: true },
    {
      name: 'at',
      type: 'timestamp with time zone',
      isRequired: true,
      default: 'now()',
      fill: 'now()',
      from: ['changed_at', 'created_at', 'logged_at'],
    },
    { name: 'actor', ...NAMED, from: ['changed_by'] },
    { name: 'action', ...NAMED, from: ['operation'] },
    { name: 'subject', ...NAMED, from: ['table_name'] },
    { name: 'reason', type: 'text' },
    {
      name: 'details',
      type: 'jsonb',
      isRequired: true,
      default: `'{}'`,
      fill: `'{}'`,
      from: ['row_data'],
    },
    { name: 'written_by', ...NAMED },
    { name: 'changed', type: 'jsonb' },
  ],
  unique: {},
  checks: { actor_is_named: 'length(actor) between 1 and 200' },
  optional: ['table_name', 'operation', 'row_data', 'changed_by', 'clinic_id'],
};

export const ADOPTED_TABLES: readonly AdoptedTable[] = [EVENTS, SIDE_EFFECTS, CREDITS, CALLS, AUDIT];
