// The provider's side of the money: what Stripe's charges say was captured and refunded, beside what the ledger says. Both move
// while they are read, so what looks wrong is looked at again, and only what is still wrong in the same way is a difference.

import { isObject, type JsonObject } from '../read.ts';
import type { Ask } from './ask.ts';
import type { Stretch } from './source.ts';
import { API_VERSION, accountsOf, listPages } from './stripe.ts';

/** A row of webhook.find_payments, as far as it is compared. */
export interface LedgerPayment {
  readonly object_id: string;
  readonly currency: string | null;
  readonly captured: number;
  readonly refunded: number;
}

export type BookDifferenceKind = 'payment_missing' | 'captured_differs' | 'refunded_differs';

export interface BookDifference {
  readonly kind: BookDifferenceKind;
  readonly payment: string;
  readonly detail: string;
}

export interface BookPorts {
  readonly ask: Ask;
  readonly findPayments: (objectIds: readonly string[]) => Promise<LedgerPayment[]>;
  /** Told of the payments in which money moved, page by page. */
  readonly onSeen?: (payments: readonly string[]) => void;
  /** How many charges have been compared so far. */
  readonly onProgress: (compared: number) => void;
}

interface Charge {
  readonly id: string;
  readonly account: string | undefined;
  /** What the ledger calls it. */
  readonly payment: string;
  readonly currency: string;
  readonly captured: number;
  readonly refunded: number;
}

/** Suspects are asked for one by one; so many are enough to see what is wrong. */
const MAX_LOOKED_AT_AGAIN = 1_000;

/** Every payment of Stripe's in which money moved, and that the ledger does not have in the same way. */
export async function findBookDifferences(
  { ask, findPayments, onSeen, onProgress }: BookPorts,
  stretch: Stretch,
  accounts: readonly string[],
): Promise<BookDifference[]> {
  const asking: Ask = (path, headers) => ask(path, { 'stripe-version': API_VERSION, ...headers });
  const suspects: Charge[] = [];
  let compared = 0;
  for (const account of accountsOf(accounts))
    for await (const page of listPages(asking, '/v1/charges', stretch, account)) {
      const charges = page.flatMap((charge) => readCharge(charge, account) ?? []);
      onSeen?.(charges.map(({ payment }) => payment));
      suspects.push(...(await differing(charges, findPayments)).map(({ charge }) => charge));
      compared += page.length;
      onProgress(compared);
    }
  return lookAgain(suspects, asking, findPayments);
}

async function lookAgain(
  suspects: readonly Charge[],
  ask: Ask,
  findPayments: BookPorts['findPayments'],
): Promise<BookDifference[]> {
  const now: Charge[] = [];
  for (const { id, account } of suspects.slice(0, MAX_LOOKED_AT_AGAIN)) {
    const headers = account === undefined ? {} : { 'stripe-account': account };
    now.push(...(readCharge(await ask(`/v1/charges/${encodeURIComponent(id)}`, headers), account) ?? []));
  }
  const again = await differing([...now, ...suspects.slice(MAX_LOOKED_AT_AGAIN)], findPayments);
  return again.flatMap(({ differences }) => differences);
}

/** A charge that failed, or of which nothing was captured, has moved no money. */
function readCharge(charge: JsonObject, account: string | undefined): Charge[] | undefined {
  const {
    id,
    payment_intent: intent,
    currency,
    amount_captured: captured,
    amount_refunded: refunded,
  } = charge;
  const intentId = isObject(intent) ? intent.id : intent;
  if (typeof id !== 'string' || typeof currency !== 'string' || !(Number(captured) > 0)) return undefined;
  const payment = typeof intentId === 'string' ? intentId : id;
  return [{ id, account, payment, currency, captured: Number(captured), refunded: Number(refunded) }];
}

async function differing(
  charges: readonly Charge[],
  findPayments: BookPorts['findPayments'],
): Promise<{ charge: Charge; differences: BookDifference[] }[]> {
  if (charges.length === 0) return [];
  const payments = await findPayments(charges.map(({ payment }) => payment));
  const known = new Map(payments.map((payment) => [payment.object_id, payment]));
  return charges
    .map((charge) => ({ charge, differences: compareCharge(charge, known.get(charge.payment)) }))
    .filter(({ differences }) => differences.length > 0);
}

/** What is wrong with one payment, given what both sides say about it. Pure. */
export function compareCharge(charge: Charge, payment: LedgerPayment | undefined): BookDifference[] {
  const { currency, captured, refunded } = charge;
  const differ = (kind: BookDifferenceKind, detail: string) => ({ kind, payment: charge.payment, detail });
  if (payment === undefined || (payment.captured === 0 && payment.currency === null))
    return [differ('payment_missing', `Stripe captured ${captured} ${currency}`)];
  const unit = payment.currency === currency ? currency : `${payment.currency} (Stripe: ${currency})`;
  const found: BookDifference[] = [];
  if (payment.captured !== captured || payment.currency !== currency)
    found.push(differ('captured_differs', `Stripe ${captured}, ledger ${payment.captured} ${unit}`));
  if (payment.refunded !== refunded)
    found.push(differ('refunded_differs', `Stripe ${refunded}, ledger ${payment.refunded} ${unit}`));
  return found;
}
