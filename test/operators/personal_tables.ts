// Which tables hold nothing about users, and why. Every other table of the catalog that can hold a text must have a row of the test
// user before the erasure (personal_history.ts) and none after it, so a new table has to come into audit.personal_places of its
// database, or onto this list.

import type pg from 'pg';

export type Side = 'db1' | 'db2';

const OF_OPERATORS = 'people who operate it, who are not users';
const NO_USER = 'rules and settings of the owner';
const OF_CRON = 'jobs of our own, their commands and how they ended';
const OF_SAMPLES = 'counts of pools, lanes and endpoints, and names of databases and targets';
const OF_MIGRATIONS = 'the statements of our migrations';
const COUNTS = 'counts of a pool';
const HASHES = 'hashes';
const QUEUE_NAMES = 'names of queues';
const UNTOLD = 'what a transaction changed of the rules: empty outside of it';
const OUR_WORKER = 'what we ask our own bridge worker, and what it answers: counts';
const PLACES = 'names of tables';
const FAULTS = 'what is wrong with a registration';
const SLOTS = 'slots and their pools';

/** Tables with such a reason hold nothing about any person, an operator neither. */
export const OF_NOBODY: ReadonlySet<string> = new Set([
  NO_USER,
  OF_CRON,
  OF_MIGRATIONS,
  COUNTS,
  HASHES,
  QUEUE_NAMES,
  UNTOLD,
  OUR_WORKER,
  PLACES,
  FAULTS,
  SLOTS,
]);

export const WITHOUT_USERS: Readonly<Record<Side, Readonly<Record<string, string>>>> = {
  db1: {
    'audit.chain': HASHES,
    'audit.erasures': 'the id of a user while that one is being erased, and no row else',
    'audit.operators': OF_OPERATORS,
    'audit.personal_places': PLACES,
    'audit.retention': NO_USER,
    'audit.marks': OF_SAMPLES,
    'audit.minute_samples': OF_SAMPLES,
    'audit.sampler': OF_SAMPLES,
    'audit.samples': OF_SAMPLES,
    'audit.seals': HASHES,
    'audit.untold': UNTOLD,
    'cron.job': OF_CRON,
    'cron.job_run_details': OF_CRON,
    'intake.cells': NO_USER,
    'intake.copied_doors': NO_USER,
    'intake.ended_sessions': OF_OPERATORS,
    'intake.free_counts': COUNTS,
    'intake.held_counts': COUNTS,
    'intake.hook_allowed_hosts': NO_USER,
    'intake.parcels':
      'a pool on its way between two cells: an export reads it, and no erasure begins while there is one',
    'intake.pool_allowances': COUNTS,
    'intake.pool_marks': COUNTS,
    'intake.pool_places': NO_USER,
    'intake.pool_requests': OF_OPERATORS,
    'intake.pool_totals': COUNTS,
    'net._http_response': OUR_WORKER,
    'net.http_request_queue': OUR_WORKER,
    'pgmq.meta': QUEUE_NAMES,
    'pgmq.notify_insert_throttle': QUEUE_NAMES,
    'pgmq.topic_bindings': QUEUE_NAMES,
    'public.engine_config': NO_USER,
    'public.engine_metrics': COUNTS,
    'public.order_payments': "a provider's ids and amounts, with the order",
    'public.pool_details': NO_USER,
    'public.slot_manifest': SLOTS,
    'supabase_migrations.schema_migrations': OF_MIGRATIONS,
    'supabase_migrations.seed_files': OF_MIGRATIONS,
  },
  db2: {
    'audit.chain': HASHES,
    'audit.erasures': 'the id of a user while that one is being erased, and no row else',
    'audit.operators': OF_OPERATORS,
    'audit.personal_places': PLACES,
    'audit.retention': NO_USER,
    'audit.marks': OF_SAMPLES,
    'audit.minute_samples': OF_SAMPLES,
    'audit.sampler': OF_SAMPLES,
    'audit.samples': OF_SAMPLES,
    'audit.seals': HASHES,
    'audit.untold': UNTOLD,
    'public.call_sites': NO_USER,
    'public.erased_claims': 'ids of claims and the names that stand for erased users',
    'public.payment_refunds': "a provider's ids and amounts, with the payment",
    'public.payment_rules': NO_USER,
    'public.payment_transactions': "a provider's ids and amounts, with the payment",
    'public.ticket_uses': OF_OPERATORS,
    'public.webhook_endpoints': NO_USER,
    'public.webhook_handlers': NO_USER,
    'supabase_migrations.schema_migrations': OF_MIGRATIONS,
    'supabase_migrations.seed_files': OF_MIGRATIONS,
    'webhook.handler_faults': FAULTS,
    'webhook.secret_names': NO_USER,
    'webhook.tenants': NO_USER,
  },
};

/** Tables with a column that can hold a text, JSON or bytes. */
export async function tablesWithText(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query(`
    select n.nspname || '.' || c.relname as name
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and n.nspname !~ '^(pg_|information_schema$)' and exists (
      select from pg_attribute a
      join pg_type t on t.oid = a.atttypid
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        and format_type(coalesce(nullif(t.typbasetype, 0), t.oid), null) ~ '^(text|character|name|jsonb?|bytea)'
    )
    order by 1`);
  return rows.map(({ name }) => name);
}

/** In how many rows of each table the id stands: as text, in bytes (hex), or in base64 wherever that begins. */
export async function rowsWith(client: pg.Client, id: string): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const table of await tablesWithText(client)) {
    const { rows } = await client.query(
      `select count(*)::int as n from ${table} r where exists (select from unnest($1::text[]) f where strpos(r::text, f) > 0)`,
      [formsOf(id)],
    );
    if (rows[0].n > 0) found[table] = rows[0].n;
  }
  return found;
}

function formsOf(id: string): string[] {
  const bytes = Buffer.from(id);
  const base64 = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    // Without the characters that also hold bits of the neighbours.
    return text.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6));
  });
  return [id, bytes.toString('hex'), ...base64];
}

/** What the planner has kept of values. */
export async function statisticsWith(client: pg.Client, id: string): Promise<string[]> {
  const { rows } = await client.query(
    `select schemaname || '.' || tablename || '.' || attname as name from pg_stats s where strpos(s::text, $1) > 0`,
    [id],
  );
  return rows.map(({ name }) => name);
}

/** What must be the same after an erasure: how many rows there are of each kind, what money adds up to, and the keys. */
export async function sumsOf(client: pg.Client, side: Side): Promise<unknown> {
  const query: Record<Side, string> = {
    db1: `select
      (select jsonb_agg(t order by t) from (select pool_id, state, verified, count(*) from public.claims group by 1, 2, 3) t) as claims,
      (select md5(string_agg(claim_id || coalesce(request_key::text, ''), ',' order by claim_id)) from public.claims) as claim_keys,
      (select jsonb_agg(t order by t) from (select pool_id, status, count(*) from public.inventory_slots group by 1, 2) t) as slots,
      (select jsonb_build_array(count(*), sum(msg_id), sum(read_ct)) from pgmq.q_intake_queue) as messages,
      (select jsonb_build_array(count(*), sum(msg_id)) from pgmq.q_intake_dlq) as letters,
      (select count(*) from pgmq.a_intake_dlq) as archived,
      (select count(*) from pgmq.q_event_inbox) as inbox,
      (select jsonb_agg(t order by t) from (select pool_id, seats, unit_price, count(*) from public.orders group by 1, 2, 3) t) as orders`,
    db2: `select
      (select jsonb_agg(t order by t) from (
        select provider, currency, kind, count(*), sum(amount) from public.credit_ledger group by 1, 2, 3) t) as credits,
      (select md5(string_agg(business_key || event_id, ',' order by id)) from public.credit_ledger) as credit_keys,
      (select jsonb_agg(t order by t) from (
        select provider, state, count(*), sum(captured), sum(refunded), sum(disputed) from public.payments group by 1, 2) t) as payments,
      (select jsonb_agg(t order by t) from (select provider, status, count(*) from public.webhook_events group by 1, 2) t) as events,
      (select md5(string_agg(concat(event_id, payload_hash, dedupe_hash), ',' order by id)) from public.webhook_events) as event_keys,
      (select jsonb_agg(t order by t) from (select pool_id, verified, count(*) from public.confirmed_tickets group by 1, 2) t) as tickets,
      (select count(*) from public.voided_tickets) as voided,
      (select md5(string_agg(concat(site_id, event_id, signature_hash), ',' order by id)) from public.calls) as calls,
      (select count(*) from public.webhook_side_effects) as side_effects,
      (select count(*) from public.webhook_alarms) as alarms`,
  };
  return (await client.query(query[side])).rows[0];
}
