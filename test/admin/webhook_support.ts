// Stored events in a known state, as workers that gave up would leave them.

import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { runCommand, UsageError } from '../../src/commands/grammar.ts';
import { command as webhooks } from '../../src/commands/webhooks.ts';
import { StackError } from '../../src/failure.ts';

export interface StoredEvent {
  id: string;
  eventId: string;
}

export interface StoreOptions {
  webhookId?: string;
  provider?: string;
  status?: string;
  error?: string | null;
  receivedAt?: string;
  type?: string;
  payload?: unknown;
}

let stored = 0;

/** Ids that rise with every event: those of one millisecond would be in any order. */
function nextId(): string {
  return `01900000-0000-7000-8000-${(++stored).toString(16).padStart(12, '0')}`;
}

/** One event for each id, in their order. */
export async function storeEvents(
  db2: pg.Client,
  eventIds: string[],
  options: StoreOptions = {},
): Promise<StoredEvent[]> {
  const { webhookId = randomUUID(), provider = 'test', status = 'dead_letter' } = options;
  const events = eventIds.map((eventId) => ({ eventId, id: nextId() }));
  await db2.query(
    `insert into public.webhook_events
       (id, webhook_id, provider, event_id, payload, event_type, status, attempts, error, received_at, next_attempt_at)
     select t.id, $1::uuid, $2, t.event_id, $8::jsonb, $9, $4::public.webhook_event_status, 5, $5, coalesce($6, now()),
       case when $4 in ('pending', 'failed', 'processing') then now() + interval '1 day' end
     from unnest($3::text[], $7::uuid[]) t (event_id, id)`,
    [
      webhookId,
      provider,
      eventIds,
      status,
      options.error === undefined ? 'it broke' : options.error,
      options.receivedAt ?? null,
      events.map(({ id }) => id),
      JSON.stringify(options.payload ?? {}),
      options.type ?? 'unknown',
    ],
  );
  return events;
}

/** Status by the provider's id of all events. */
export async function statuses(db2: pg.Client): Promise<Record<string, string>> {
  const { rows } = await db2.query('select event_id, status from public.webhook_events order by id');
  return Object.fromEntries(rows.map((row) => [row.event_id, row.status]));
}

export async function auditRows(db2: pg.Client, action: string) {
  const { rows } = await db2.query(
    `select actor, reason, details ->> 'event_id' as event_id, details ->> 'status' as status,
       details ->> 'idempotency_key' as idempotency_key
     from audit.audit_logs where action = $1 order by id`,
    [action],
  );
  return rows;
}

export interface Ran {
  /** As the command line would end: 2 for a call that was not understood, 1 for what a person can mend. */
  code: number;
  stdout: string;
  stderr: string;
}

/** `sluice webhooks …` in this process, which is many times faster than in one of its own. */
export async function webhooksHere(db2Url: string, args: string[]): Promise<Ran> {
  const ran: Ran = { code: 0, stdout: '', stderr: '' };
  const { log, error } = console;
  const before = { ...process.env };
  Object.assign(process.env, { DB2_URL: db2Url, USER: 'grace', SLUICE_LOG: 'silent' });
  console.log = (line: string) => {
    ran.stdout += `${line}\n`;
  };
  console.error = (line: string) => {
    ran.stderr += `${line}\n`;
  };
  try {
    ran.code = await runCommand('webhooks', webhooks, args);
  } catch (thrown) {
    if (!(thrown instanceof UsageError) && !(thrown instanceof StackError)) throw thrown;
    ran.code = thrown instanceof StackError ? 1 : 2;
    ran.stderr += `${thrown.message}\n`;
    if (thrown instanceof StackError) ran.stderr += `${thrown.hint}\n`;
  } finally {
    Object.assign(console, { log, error });
    process.env = before;
  }
  return ran;
}
