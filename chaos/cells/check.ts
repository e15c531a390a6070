// What the databases hold against what clients were told. Read from the tables, not through the functions on trial.

import type pg from 'pg';
import { withClient } from '../../src/migrate/sql.ts';
import { until } from './servers.ts';
import type { Kind, Told } from './tally.ts';

export interface Finding {
  readonly kind: Kind;
  readonly key: string;
  readonly what: string;
}

export interface Places {
  readonly db1Url: string;
  /** Left out where events and calls are not on trial. */
  readonly db2Url?: string;
}

/** In seconds on a quiet machine; one that does ten other things takes minutes. */
const DRAIN_MS = 600_000;

/** Acknowledged, and not there. */
export async function findLost(told: readonly Told[], { db1Url, db2Url }: Places): Promise<Finding[]> {
  const keys = (kind: Kind): string[] => [
    ...new Set(told.filter((one) => one.kind === kind).map(({ key }) => key)),
  ];
  const claims = await withClient(db1Url, (client) =>
    pairs(
      client,
      'select request_id, claim_id from public.claims where request_id = any ($1)',
      keys('claim'),
    ),
  );
  const others =
    db2Url === undefined
      ? new Map<string, string>()
      : await withClient(
          db2Url,
          async (client) =>
            new Map([
              ...(await pairs(
                client,
                "select event_id, '' from public.webhook_events where event_id = any ($1)",
                keys('event'),
              )),
              ...(await pairs(
                client,
                "select signature_hash, '' from public.calls where signature_hash = any ($1)",
                keys('call'),
              )),
            ]),
        );
  return told.flatMap(({ kind, key, claimId }) => {
    const found = (kind === 'claim' ? claims : others).get(key);
    if (found === claimId) return [];
    const what =
      found === undefined ? 'was acknowledged and is not there' : `was told ${claimId}, is ${found}`;
    return [{ kind, key, what }];
  });
}

/** Once all is carried: each claim is one ticket, each event one credit, each call one row. */
export async function findDoubled({ db1Url, db2Url = '' }: Places): Promise<Finding[]> {
  const claims = await withClient(db1Url, (client) =>
    pairs(client, 'select claim_id, request_id from public.claims', undefined),
  );
  const tickets = await withClient(db2Url, (client) =>
    pairs(client, 'select claim_id, resource_id from public.confirmed_tickets', undefined),
  );
  const wrong = await withClient(db2Url, (client) =>
    pairs(
      client,
      `select object_id, sum(amount)::text from public.credit_ledger group by object_id having sum(amount) <> 100
       union all
       select event_id, 'no credit' from public.webhook_events e
       where not exists (select from public.credit_ledger c where c.event_id = e.event_id)`,
      undefined,
    ),
  );
  return [
    ...[...tickets.keys()]
      .filter((claimId) => !claims.has(claimId))
      .map((key) => ({ kind: 'claim' as const, key, what: 'has a ticket and is not a claim' })),
    ...[...claims.keys()]
      .filter((claimId) => !tickets.has(claimId))
      .map((key) => ({ kind: 'claim' as const, key, what: 'has no ticket' })),
    ...[...wrong].map(([key, sum]) => ({ kind: 'event' as const, key, what: `took effect as ${sum}` })),
  ];
}

/** Until nothing waits any more. */
export async function drained({ db1Url, db2Url = '' }: Places): Promise<void> {
  const none = (url: string, sql: string) =>
    withClient(url, async (client) => {
      const { rows } = await client.query(sql);
      if (rows.length > 0) throw new Error(JSON.stringify(rows));
      return true;
    });
  await until(
    'all claims are tickets',
    () => none(db1Url, 'select msg_id, read_ct, vt from pgmq.q_intake_queue limit 3'),
    DRAIN_MS,
    500,
  );
  await until(
    'all events have taken effect',
    () =>
      none(
        db2Url,
        `select status, count(*), min(next_attempt_at), max(attempts), max(error) from public.webhook_events
         where status not in ('success', 'skipped') group by status`,
      ),
    DRAIN_MS,
    500,
  );
}

/** The first column by the second, of all rows or of those with these keys. */
async function pairs(
  client: pg.Client,
  sql: string,
  keys: readonly string[] | undefined,
): Promise<Map<string, string>> {
  const { rows } = await client.query({
    text: sql,
    values: keys === undefined ? [] : [keys],
    rowMode: 'array',
  });
  return new Map(rows as unknown as [string, string][]);
}
