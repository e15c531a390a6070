// `sluice reconcile --stripe`: does Stripe tell the same story about payments as the ledger.

import { SourceError } from '#core/webhook/backfill/ask.ts';
import {
  type BookDifference,
  findBookDifferences,
  type LedgerPayment,
} from '#core/webhook/backfill/books.ts';
import { type AskingEndpoint, stretchOf } from '#core/webhook/backfill/source.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import type { Secrets } from '#core/webhook/secrets.ts';
import type { Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { isKeyed, openSource } from '../webhook/backfill.ts';
import { secretsOf } from '../webhook/secret_users.ts';
import { knownSecrets, withDb2 } from './db2.ts';
import { readStackEnv } from './operator.ts';
import { startProgress } from './progress.ts';
import { formatTable } from './table.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
/** As far back as Stripe has the events that could fill a gap. */
const DEFAULT_DAYS = 30;

type Found = BookDifference & { endpoint: string };

/** `since` in milliseconds; Stripe's last 30 days where left out. */
export async function reconcileWithStripe(sinceMs: number | undefined, asJson: boolean): Promise<number> {
  const since = sinceMs ?? Date.now() - DEFAULT_DAYS * DAY_MS;
  return withDb2(async (db2) => {
    const store = createOperatorStore((name, args) => db2.call(`webhook.${name}`, args));
    const endpoints = (await store.listEndpoints()).filter(
      ({ provider, is_active }) => provider === 'stripe' && is_active,
    );
    const secrets = secretsOf(db2, knownSecrets());
    const compared: string[] = [];
    const found: Found[] = [];
    for (const endpoint of endpoints) {
      if (!(await isKeyed(endpoint, secrets))) continue;
      const differences = await compare(db2, endpoint, secrets, since);
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

async function compare(
  db2: Database,
  endpoint: AskingEndpoint,
  secrets: Secrets,
  sinceMs: number,
): Promise<BookDifference[]> {
  const progress = startProgress(undefined, `charges of ${endpoint.name}`);
  try {
    const { signal } = new AbortController();
    const urls = readStackEnv(process.env);
    const open = await openSource(endpoint, { secrets, urls, log: createLog(), signal });
    let soFar = 0;
    return await findBookDifferences(
      {
        ask: open.ask,
        findPayments: (ids) =>
          db2.call<LedgerPayment>('webhook.find_payments', { p_tenant: endpoint.tenant, p_object_ids: ids }),
        onProgress(done) {
          progress.advance(done - soFar);
          soFar = done;
        },
      },
      stretchOf(sinceMs, Date.now()),
      open.accounts,
    );
  } catch (error) {
    if (error instanceof SourceError) throw new StackError(error.message, error.hint, error);
    throw error;
  } finally {
    progress.end();
  }
}

function report(compared: readonly string[], found: readonly Found[], since: Date, asJson: boolean): void {
  const names = [...new Set(found.map(({ endpoint }) => endpoint))];
  const from = new Date(Math.max(since.getTime(), Date.now() - DEFAULT_DAYS * DAY_MS + DAY_MS / 24));
  const commands = names.map(
    (name) => `sluice webhooks backfill ${name} --since ${from.toISOString().slice(0, 19)}Z`,
  );
  if (asJson) {
    console.log(JSON.stringify({ compared, differences: found, commands }));
    return;
  }
  if (found.length === 0) {
    console.log(`No differences: Stripe and the ledger tell the same story (${compared.join(', ')}).`);
    return;
  }
  const rows = found.map(({ endpoint, kind, payment, detail }) => [endpoint, kind, payment, detail]);
  console.log(formatTable(['ENDPOINT', 'DIFFERENCE', 'PAYMENT', 'DETAIL'], rows));
  console.log(
    `\nAsk Stripe for the events that may be missing:\n${commands.map((line) => `  ${line}`).join('\n')}`,
  );
}
