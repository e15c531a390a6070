// Stripe as paid orders see it, on top of its own package. The package comes in: Node and the Edge Functions import it from
// different places. It must not try again by itself (maxNetworkRetries 0): leases and breakers do.

import { Coalescer } from '../coalescer.ts';
import { type ApiUrls, apiUrl } from '../webhook/backfill/sources.ts';
import { stripe as source } from '../webhook/backfill/stripe.ts';
import {
  PaymentError,
  type PaymentErrorKind,
  type Payments,
  type RefundOrder,
  type Session,
  type StripeObject,
} from './ports.ts';

interface Listed extends AsyncIterable<object> {}

/** What we use of an instance of the package `stripe`. */
export interface StripeClient {
  readonly checkout: {
    readonly sessions: {
      create(params: never, options: { idempotencyKey: string }): Promise<object>;
      retrieve(id: string): Promise<object>;
      expire(id: string): Promise<object>;
      list(params: { created: { gte: number }; limit: number }): Listed;
    };
  };
  readonly paymentIntents: { retrieve(id: string): Promise<object> };
  readonly charges: { retrieve(id: string): Promise<object> };
  readonly refunds: {
    create(params: never, options: { idempotencyKey: string }): Promise<object>;
    list(params: never): Listed;
  };
}

/** A call gives up after this; leases are longer. */
const TIMEOUT_MS = 10_000;
const PAGE = 100;
/** A payment that was tried and can still be made. */
const PENDING: ReadonlySet<unknown> = new Set(['processing', 'requires_action', 'requires_capture']);
/** A refund that has not taken money back, or has given it back again. */
const UNDONE: ReadonlySet<unknown> = new Set(['failed', 'canceled']);

/** How the package is to be set up, beside its fetch client. Throws where the address is not one that a key may be sent to. */
export function stripeOptions(urls: ApiUrls) {
  const { protocol, hostname, port } = new URL(apiUrl(source, urls));
  return {
    host: hostname,
    protocol: protocol === 'http:' ? ('http' as const) : ('https' as const),
    ...(port !== '' && { port }),
    maxNetworkRetries: 0,
    timeout: TIMEOUT_MS,
    telemetry: false,
  };
}

export type StripeOptions = ReturnType<typeof stripeOptions>;

export function createPayments(stripe: StripeClient): Payments {
  const { sessions } = stripe.checkout;
  // A look that has begun may have passed a session by: requests that arrive during one share the next.
  const looks = new Coalescer((wanted: Wanted[]) => asked(() => lookFor(wanted, sessions)));
  const show = (id: string) => asked(async () => sessionOf(await sessions.retrieve(id)));
  const refundsOf = (payment: string) =>
    asked(async () => {
      const found: StripeObject[] = [];
      for await (const refund of stripe.refunds.list({ ...named(payment), limit: PAGE } as never))
        found.push(refund as StripeObject);
      return found;
    });
  return {
    showSession: show,
    refundsOf,
    createSession: (params, idempotencyKey) =>
      asked(async () => sessionOf(await sessions.create(params as never, { idempotencyKey }))),
    findSession: (checkout, sinceMs) => looks.submit({ checkout, sinceMs }),
    async expireSession(id) {
      try {
        return await asked(async () => sessionOf(await sessions.expire(id)));
      } catch (error) {
        if (!isRefused(error)) throw error;
        return show(id);
      }
    },
    standingOf: (id) =>
      asked(async () => {
        const { status } = (await stripe.paymentIntents.retrieve(id)) as StripeObject;
        return status === 'succeeded' ? 'paid' : PENDING.has(status) ? 'pending' : 'over';
      }),
    async refundable(payment) {
      const paid = await asked(async () => {
        const { payment_intent: intent } = named(payment);
        const object = await (intent === undefined
          ? stripe.charges.retrieve(payment)
          : stripe.paymentIntents.retrieve(intent));
        const { amount_received, amount_captured } = object as StripeObject;
        return Number(amount_received ?? amount_captured ?? 0);
      });
      const counted = (await refundsOf(payment)).filter(({ status }) => !UNDONE.has(status));
      return paid - counted.reduce((sum, { amount }) => sum + Number(amount), 0);
    },
    refund: ({ payment, amount, refundKey, idempotencyKey }: RefundOrder) =>
      asked(async () => {
        const params = { ...named(payment), amount, metadata: { sluice_refund: refundKey } };
        return (await stripe.refunds.create(params as never, { idempotencyKey })) as StripeObject;
      }),
  };
}

interface Wanted {
  readonly checkout: string;
  readonly sinceMs: number;
}

/** Stripe's list takes no metadata, so it is looked through, once for all: ten thousand looks of a hundred pages would take hours. */
async function lookFor(
  wanted: readonly Wanted[],
  sessions: StripeClient['checkout']['sessions'],
): Promise<(Session | undefined)[]> {
  const names = new Set<unknown>(wanted.map(({ checkout }) => checkout));
  const gte = Math.floor(Math.min(...wanted.map(({ sinceMs }) => sinceMs)) / 1_000);
  const found = new Map<unknown, Session>();
  for await (const one of sessions.list({ created: { gte }, limit: PAGE })) {
    const { metadata } = one as { metadata?: StripeObject | null };
    if (!names.has(metadata?.checkout)) continue;
    found.set(metadata?.checkout, sessionOf(one));
    if (found.size === names.size) break;
  }
  return wanted.map(({ checkout }) => found.get(checkout));
}

export function isRefused(error: unknown): boolean {
  return error instanceof PaymentError && error.kind === 'refused';
}

/** A payment is its payment intent, or the charge of one that has none. */
function named(payment: string): { payment_intent?: string; charge?: string } {
  return payment.startsWith('pi_') ? { payment_intent: payment } : { charge: payment };
}

function sessionOf(given: object): Session {
  const object = given as StripeObject;
  const { id, status, payment_status: payment, payment_intent: intent, url } = object;
  const intentId = typeof intent === 'object' && intent !== null ? (intent as StripeObject).id : intent;
  if (typeof id !== 'string' || (status !== 'open' && status !== 'complete' && status !== 'expired'))
    throw new PaymentError('outage', 'the answer is not a Checkout Session');
  return {
    id,
    status,
    isPaid: payment === 'paid',
    paymentIntent: typeof intentId === 'string' ? intentId : null,
    url: typeof url === 'string' ? url : null,
    object: plain(object),
  };
}

/** Without what the package adds to its answers. */
function plain(object: StripeObject): StripeObject {
  const { lastResponse: _, ...rest } = object;
  return rest;
}

async function asked<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof PaymentError) throw error;
    throw new PaymentError(kindOf(error), textOf(error), reasonOf(error));
  }
}

interface StripeFailure {
  readonly statusCode?: number;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function kindOf(error: unknown): PaymentErrorKind {
  const { statusCode = 0, code, headers = {} } = (error ?? {}) as StripeFailure;
  if (statusCode === 401 || statusCode === 403) return 'key';
  if (statusCode === 500 && headers['idempotent-replayed'] === 'true') return 'burnt';
  const isNo = statusCode === 400 || statusCode === 402 || statusCode === 404;
  return isNo && code !== 'rate_limit' ? 'refused' : 'outage';
}

/** All that the package throws has a `detail`: an error where the connection failed, else nothing that the text does not say. */
function reasonOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null || !('detail' in error)) return error;
  return error.detail instanceof Error ? error.detail : undefined;
}

function textOf(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown };
  const { code } = (error ?? {}) as StripeFailure;
  return `${code === undefined ? '' : `${code}: `}${String(message ?? error)}`;
}
