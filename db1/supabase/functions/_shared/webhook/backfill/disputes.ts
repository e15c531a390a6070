// Stripe's disputes beside the ledger: each balance transaction that moved money, by its own id. Both move while they are read, so
// what looks wrong is looked at again, and only what is still wrong in the same way is a difference.

import { isObject, type JsonObject } from '../read.ts';
import type { Ask } from './ask.ts';
import type { Stretch } from './source.ts';
import { API_VERSION, accountsOf, listPages } from './stripe.ts';

/** A row of webhook.find_transactions, as far as it is compared. */
export interface LedgerTransaction {
  readonly transaction_id: string;
  readonly amount: number;
}

export interface DisputeDifference {
  readonly kind: 'dispute_differs';
  readonly payment: string;
  readonly detail: string;
}

export interface DisputePorts {
  readonly ask: Ask;
  readonly findTransactions: (transactionIds: readonly string[]) => Promise<LedgerTransaction[]>;
  /** How many disputes have been compared so far. */
  readonly onProgress: (compared: number) => void;
}

interface Dispute {
  readonly id: string;
  readonly account: string | undefined;
  /** What the ledger calls it. */
  readonly payment: string;
  readonly currency: string;
  readonly transactions: readonly Transaction[];
}

interface Transaction {
  readonly id: string;
  readonly amount: number;
  readonly currency: string;
}

/** Transactions of the account and not of the buyer, as webhook.note_dispute leaves them out. */
const FEES: ReadonlySet<unknown> = new Set(['stripe_fee', 'stripe_fx_fee', 'tax_fee']);

/** Every dispute of Stripe's that moved money, and that the ledger does not have in the same way. */
export async function findDisputeDifferences(
  { ask, findTransactions, onProgress }: DisputePorts,
  stretch: Stretch,
  accounts: readonly string[],
): Promise<DisputeDifference[]> {
  const asking: Ask = (path, headers) => ask(path, { 'stripe-version': API_VERSION, ...headers });
  const suspects: Dispute[] = [];
  let compared = 0;
  for (const account of accountsOf(accounts))
    for await (const page of listPages(asking, '/v1/disputes', stretch, account)) {
      const disputes = page.flatMap((dispute) => readDispute(dispute, account) ?? []);
      suspects.push(...(await differing(disputes, findTransactions)).map(({ dispute }) => dispute));
      compared += page.length;
      onProgress(compared);
    }
  const now: Dispute[] = [];
  for (const { id, account } of suspects) {
    const headers: Record<string, string> = account === undefined ? {} : { 'stripe-account': account };
    now.push(
      ...(readDispute(await asking(`/v1/disputes/${encodeURIComponent(id)}`, headers), account) ?? []),
    );
  }
  return (await differing(now, findTransactions)).map(({ difference }) => difference);
}

const idOf = (value: JsonObject[string] | undefined) => (isObject(value) ? value.id : value);

function readDispute(dispute: JsonObject, account: string | undefined): Dispute[] | undefined {
  const { id, currency, payment_intent, charge, balance_transactions } = dispute;
  const payment = idOf(payment_intent) ?? idOf(charge);
  if (typeof id !== 'string' || typeof payment !== 'string') return undefined;
  const transactions = (Array.isArray(balance_transactions) ? balance_transactions : [])
    .filter(isObject)
    .filter(({ type }) => !FEES.has(type))
    .map((one) => ({ id: String(one.id), amount: Number(one.amount), currency: String(one.currency) }));
  return [{ id, account, payment, currency: String(currency), transactions }];
}

async function differing(
  disputes: readonly Dispute[],
  findTransactions: DisputePorts['findTransactions'],
): Promise<{ dispute: Dispute; difference: DisputeDifference }[]> {
  const ids = disputes.flatMap(({ transactions }) => transactions.map(({ id }) => id));
  if (ids.length === 0) return [];
  const rows = await findTransactions(ids);
  const known = new Map(rows.map(({ transaction_id, amount }) => [transaction_id, amount]));
  return disputes.flatMap((dispute) => {
    const difference = compareDispute(dispute, known);
    return difference === undefined ? [] : [{ dispute, difference }];
  });
}

/** What is wrong with one dispute, given the amounts that the ledger has of its transactions. Pure. */
export function compareDispute(
  { id, payment, currency, transactions }: Dispute,
  known: ReadonlyMap<string, number>,
): DisputeDifference | undefined {
  const wrong = transactions.flatMap((one) => {
    const ours = known.get(one.id);
    if (ours === undefined)
      return `${one.id} moved ${one.amount} ${one.currency}, and the ledger does not have it`;
    // In the currency of the account its amount says nothing about ours.
    const isSame = one.currency.toLowerCase() !== currency.toLowerCase() || one.amount === ours;
    return isSame ? [] : `${one.id} moved ${one.amount} ${currency}, ledger ${ours}`;
  });
  if (wrong.length === 0) return undefined;
  return { kind: 'dispute_differs', payment, detail: `dispute ${id}: ${wrong.join('; ')}` };
}
