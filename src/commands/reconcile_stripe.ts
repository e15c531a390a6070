// `sluice reconcile --stripe`: does Stripe tell the same story as the ledger about payments, and as the intake about sessions.

import type { SettledRow } from '#core/reconcile_orders.ts';
import { SourceError } from '#core/webhook/backfill/ask.ts';
import {
  type BookDifference,
  findBookDifferences,
  type LedgerPayment,
} from '#core/webhook/backfill/books.ts';
import { type BoughtDifference, findUnknownPayments } from '#core/webhook/backfill/bought.ts';
import {
  type DisputeDifference,
  findDisputeDifferences,
  type LedgerTransaction,
} from '#core/webhook/backfill/disputes.ts';
import {
  findSessionDifferences,
  type KnownCheckout,
  type SessionDifference,
} from '#core/webhook/backfill/sessions.ts';
import { type AskingEndpoint, stretchOf } from '#core/webhook/backfill/source.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import type { Secrets } from '#core/webhook/secrets.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { isKeyed, type OpenSource, openSource } from '../webhook/backfill.ts';
import { secretsOf } from '../webhook/secret_users.ts';
import { knownSecrets, withDb2 } from './db2.ts';
import { readDatabaseUrls, readStackEnv } from './operator.ts';
import { startProgress } from './progress.ts';
import { fromAll, refuseMoving } from './reconcile_cells.ts';
import { formatTable } from './table.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
/** As far back as Stripe has the events that could fill a gap. */
const DEFAULT_DAYS = 30;

type Differing = BookDifference | DisputeDifference | SessionDifference | BoughtDifference;
type Found = Differing & { endpoint: string };
/** Of these no event is missing: the hint to ask for events does not help. */
const NO_EVENT_MISSING: ReadonlySet<Found['kind']> = new Set([
  'session_open',
  'session_unknown',
  'payment_unknown',
]);

/** `since` in milliseconds; Stripe's last 30 days where left out. */
export async function reconcileWithStripe(sinceMs: number | undefined, asJson: boolean): Promise<number> {
  const since = sinceMs ?? Date.now() - DEFAULT_DAYS * DAY_MS;
  const log = createLog();
  const intakes = readDatabaseUrls(process.env).cells.map(({ url }) =>
    createDatabase({ url, max: 1, applicationName: 'sluice-reconcile', log }),
  );
  try {
    return await compareAll(intakes, since, asJson);
  } finally {
    await Promise.all(intakes.map((db1) => db1.end()));
  }
}

async function compareAll(intakes: readonly Database[], since: number, asJson: boolean): Promise<number> {
  return withDb2(async (db2) => {
    await refuseMoving(intakes);
    const tenants = await paidTenants(intakes);
    const store = createOperatorStore((name, args) => db2.call(`webhook.${name}`, args));
    const endpoints = (await store.listEndpoints()).filter(
      ({ provider, is_active }) => provider === 'stripe' && is_active,
    );
    const secrets = secretsOf(db2, knownSecrets());
    const compared: string[] = [];
    const found: Found[] = [];
    for (const endpoint of endpoints) {
      if (!(await isKeyed(endpoint, secrets))) continue;
      const seen = new Set<string>();
      const differences: Differing[] = [
        ...(await compare(db2, endpoint, secrets, since, seen)),
        ...(await compareDisputes(db2, endpoint, secrets, since)),
      ];
      if (tenants.has(endpoint.tenant))
        differences.push(
          ...(await compareSessions(intakes, endpoint, secrets, since)),
          ...(await compareBought(db2, endpoint, secrets, since, seen)),
        );
      compared.push(endpoint.name);
      found.push(...differences.map((difference) => ({ endpoint: endpoint.name, ...difference })));
    }
    if (compared.length === 0)
      throw new StackError(
        'no Stripe endpoint has a key to ask Stripe with',
        'set STRIPE_API_KEY, or name a key: sluice webhooks endpoints change <endpoint> --api-key-name NAME',
      );
    report(compared, found, new Date(since), asJson);
    return found.length === 0 ? 0 : 1;
  });
}

/** Sessions are ours where a pool is paid for: elsewhere the key need not be allowed to read them. */
async function paidTenants(intakes: readonly Database[]): Promise<ReadonlySet<string>> {
  const pools = await fromAll<{ payment_tenant: string }>(intakes, 'paid_pools', {});
  return new Set(pools.map(({ payment_tenant }) => payment_tenant));
}

/** `seen` gets the payments that Stripe has. */
function compare(
  db2: Database,
  endpoint: AskingEndpoint,
  secrets: Secrets,
  sinceMs: number,
  seen: Set<string>,
): Promise<BookDifference[]> {
  return asking(endpoint, secrets, 'charges', ({ ask, accounts }, onProgress) =>
    findBookDifferences(
      {
        ask,
        findPayments: (ids) =>
          db2.call<LedgerPayment>('webhook.find_payments', { p_tenant: endpoint.tenant, p_object_ids: ids }),
        onSeen: (payments) => {
          for (const payment of payments) seen.add(payment);
        },
        onProgress,
      },
      stretchOf(sinceMs, Date.now()),
      accounts,
    ),
  );
}

function compareDisputes(
  db2: Database,
  endpoint: AskingEndpoint,
  secrets: Secrets,
  sinceMs: number,
): Promise<DisputeDifference[]> {
  return asking(endpoint, secrets, 'disputes', ({ ask, accounts }, onProgress) =>
    findDisputeDifferences(
      {
        ask,
        findTransactions: (ids) =>
          db2.call<LedgerTransaction>('webhook.find_transactions', {
            p_tenant: endpoint.tenant,
            p_transaction_ids: ids,
          }),
        onProgress,
      },
      stretchOf(sinceMs, Date.now()),
      accounts,
    ),
  );
}

function compareSessions(
  intakes: readonly Database[],
  endpoint: AskingEndpoint,
  secrets: Secrets,
  sinceMs: number,
): Promise<SessionDifference[]> {
  return asking(endpoint, secrets, 'sessions', ({ ask }, onProgress) =>
    findSessionDifferences(
      {
        ask,
        tenant: endpoint.tenant,
        findCheckouts: (ids) => fromAll<KnownCheckout>(intakes, 'find_checkouts', { p_session_ids: ids }),
        decided: async (keys) =>
          (
            await fromAll<{ decided_payments: string }>(intakes, 'decided_payments', { p_payment_keys: keys })
          ).map((row) => row.decided_payments),
        onProgress,
      },
      stretchOf(sinceMs, Date.now()),
    ),
  );
}

function compareBought(
  db2: Database,
  endpoint: AskingEndpoint,
  secrets: Secrets,
  sinceMs: number,
  seen: ReadonlySet<string>,
): Promise<BoughtDifference[]> {
  return asking(endpoint, secrets, 'payments', ({ ask, accounts }, onProgress) =>
    findUnknownPayments(
      {
        ask,
        tenant: endpoint.tenant,
        settled: (after, limit) =>
          db2.call<SettledRow>('public.settled_payments', { p_after: after, p_limit: limit }),
        seen,
        onProgress,
      },
      new Date(sinceMs),
      accounts,
    ),
  );
}

async function asking<Found>(
  endpoint: AskingEndpoint,
  secrets: Secrets,
  what: string,
  compareWith: (open: OpenSource, onProgress: (done: number) => void) => Promise<Found>,
): Promise<Found> {
  const progress = startProgress(undefined, `${what} of ${endpoint.name}`);
  try {
    const { signal } = new AbortController();
    const urls = readStackEnv(process.env);
    const open = await openSource(endpoint, { secrets, urls, log: createLog(), signal });
    let soFar = 0;
    return await compareWith(open, (done) => {
      progress.advance(done - soFar);
      soFar = done;
    });
  } catch (error) {
    if (error instanceof SourceError) throw new StackError(error.message, error.hint, error);
    throw error;
  } finally {
    progress.end();
  }
}

function report(compared: readonly string[], found: readonly Found[], since: Date, asJson: boolean): void {
  const missing = found.filter(({ kind }) => !NO_EVENT_MISSING.has(kind));
  const names = [...new Set(missing.map(({ endpoint }) => endpoint))];
  const from = new Date(Math.max(since.getTime(), Date.now() - DEFAULT_DAYS * DAY_MS + DAY_MS / 24));
  const commands = names.map(
    (name) => `sluice webhooks backfill ${name} --since ${from.toISOString().slice(0, 19)}Z`,
  );
  if (asJson) {
    console.log(JSON.stringify({ compared, differences: found, commands }));
    return;
  }
  if (found.length === 0) {
    console.log(`No differences: Stripe and our databases tell the same story (${compared.join(', ')}).`);
    return;
  }
  const rows = found.map(({ endpoint, kind, payment, detail }) => [endpoint, kind, payment, detail]);
  console.log(formatTable(['ENDPOINT', 'DIFFERENCE', 'PAYMENT', 'DETAIL'], rows));
  if (commands.length === 0) return;
  console.log(
    `\nAsk Stripe for the events that may be missing:\n${commands.map((line) => `  ${line}`).join('\n')}`,
  );
}
