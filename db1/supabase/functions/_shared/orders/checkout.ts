// The door that sends a buyer to Stripe. The row with the key and the parameters is committed before Stripe is asked, so that the
// same request again, or the closer, gives the one session that there is.

import type { CallFunction } from '../call_function.ts';
import type { ClaimRecord } from '../claim.ts';
import type { OwnClaim } from '../claim_owner.ts';
import { HttpError } from '../errors.ts';
import type { Log, Metrics } from '../ports.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route } from '../router.ts';
import { type CheckoutRow, makeOrFind } from './closer.ts';
import { PaymentError, type PaymentsOf, type Session } from './ports.ts';

/** A row of public.begin_checkout. */
export interface BegunCheckout extends Omit<CheckoutRow, 'lease_token' | 'attempts' | 'created_at'> {
  readonly hold_until: string;
  readonly amount: number;
  readonly currency: string;
}

export interface CheckoutStore {
  /** As this user, or with the secret of an unverified claim. */
  begin(
    claim: ClaimRecord,
    secretHash: string | null,
    successBase: string,
  ): Promise<BegunCheckout | undefined>;
  /** How the order stands. */
  created(checkout: BegunCheckout, session: Session): Promise<string>;
  /** Nothing can be made with its key any more: the next begin makes another checkout. */
  giveUp(checkout: BegunCheckout): Promise<void>;
}

export interface CheckoutPorts {
  /** Throws where the claim is not the caller's own, and where the buyer's address has asked too often. */
  own(request: HttpRequest, claimId: string): Promise<OwnClaim>;
  readonly store: CheckoutStore;
  readonly paymentsOf: PaymentsOf;
  /** Where buyers come back to; undefined where the operator has not said. Never what the request says. */
  publicUrl(): string | undefined;
  readonly metrics: Metrics;
  readonly log: Log;
}

export function checkoutRoute(ports: CheckoutPorts, path = '/v1/claims/:claim/checkout'): Route {
  return {
    method: 'POST',
    path,
    async handle(request, claimId) {
      const { claim, secretHash } = await ports.own(request, claimId);
      const publicUrl = ports.publicUrl();
      if (publicUrl === undefined)
        throw new HttpError(
          'payment_unavailable',
          'The operator has to set SLUICE_PUBLIC_URL for this server.',
        );
      return checkOut(ports, claim, secretHash, publicUrl.replace(/\/+$/, ''));
    },
  };
}

const REFUSED =
  'Stripe refuses a page for this order. An operator finds its reason in the log of the server.';

async function checkOut(
  ports: CheckoutPorts,
  claim: ClaimRecord,
  secretHash: string | null,
  publicUrl: string,
): Promise<HttpResponse> {
  const { store, paymentsOf, metrics } = ports;
  // A second turn with another key, where nothing can be made with the first one any more.
  for (let turn = 1; ; turn++) {
    const begun = await store.begin(claim, secretHash, publicUrl);
    if (begun === undefined) throw new HttpError('unknown_claim');
    if (begun.url !== null) {
      metrics.count('sluice_checkouts_total', { outcome: 'again' });
      return answer(200, begun, begun.url);
    }
    try {
      const payments = await paymentsOf(begun.tenant, begun.livemode);
      const made = await makeOrFind(begun, claim.claimed_at, payments);
      if (made instanceof PaymentError || made.status === 'expired') {
        await store.giveUp(begun);
        if (turn === 1) continue;
        throw made instanceof PaymentError ? made : new HttpError('payment_unavailable');
      }
      const state = await store.created(begun, made);
      if (state !== 'held') throw new HttpError(state === 'paid' ? 'paid' : 'hold_over');
      // DB1 had lost its checkout, which the buyer has paid. The closer brings the payment if its webhook does not.
      if (made.url === null) throw new HttpError('paid');
      metrics.count('sluice_checkouts_total', { outcome: 'created' });
      return answer(201, begun, made.url);
    } catch (error) {
      if (!(error instanceof PaymentError)) throw error;
      metrics.count('sluice_checkouts_total', { outcome: error.kind });
      if (error.kind !== 'outage')
        ports.log.error('a checkout session was refused', { order_id: begun.order_id, cause: error });
      throw new HttpError('payment_unavailable', error.kind === 'refused' ? REFUSED : undefined, error);
    }
  }
}

function answer(status: number, { hold_until, amount, currency }: BegunCheckout, url: string): HttpResponse {
  // PostgREST writes it with an offset.
  return jsonResponse(status, { url, hold_until: hold_until.replace('+00:00', 'Z'), amount, currency });
}

/** `onClaim` asks the cell of a claim. */
export function createCheckoutStore(
  onClaim: <Answer>(
    claimId: string,
    ask: (call: CallFunction) => Promise<Answer>,
  ) => Promise<Answer | undefined>,
  bytesOfHex: (hex: string) => unknown,
): CheckoutStore {
  return {
    begin: ({ claim_id, user_id }, secretHash, successBase) =>
      onClaim(claim_id, async (call) => {
        const [row] = await call<BegunCheckout>('begin_checkout', {
          p_claim_id: claim_id,
          p_user_id: user_id,
          p_secret_hash: secretHash === null ? null : bytesOfHex(secretHash),
          p_success_base: successBase,
        });
        return row as BegunCheckout;
      }),
    async created({ order_id, n }, { id, url }) {
      const rows = await onClaim(order_id, (call) =>
        call<{ checkout_created: string }>('checkout_created', {
          p_order_id: order_id,
          p_n: n,
          p_session_id: id,
          p_url: url,
        }),
      );
      return rows?.[0]?.checkout_created ?? '';
    },
    async giveUp({ order_id, n }) {
      // Without a token: where a closer has it by now, it is the closer's.
      await onClaim(order_id, (call) =>
        call('close_checkout', {
          p_order_id: order_id,
          p_n: n,
          p_token: null,
          p_state: 'expired',
          p_payment_intent: null,
        }),
      );
    },
  };
}
