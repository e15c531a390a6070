// Payments that moved money while no event names their user: operators see them, and say whose they are.

import type { CallFunction } from '../call_function.ts';
import { HttpError } from '../errors.ts';
import { type Authorize, type OperatorRoute, operatorOf, operatorRoutes, REASON } from '../operator.ts';
import { readQuery } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';

/** What of a row of public.payments an operator needs. Amounts are in minor units. */
export interface UnnamedPayment {
  /** A tenant: see providerOf. */
  readonly provider: string;
  readonly object_id: string;
  readonly state: string;
  readonly currency: string;
  readonly captured: number;
  readonly refunded: number;
  /** Null where it was never disputed. */
  readonly disputed: number | null;
  readonly occurred_at: string;
  readonly last_event_id: string;
}

export interface PaymentName {
  readonly tenant: string;
  readonly payment: string;
  readonly userId: string;
  readonly actor: string;
  readonly reason: string | null;
}

export interface UnnamedPaymentStore {
  list(limit: number): Promise<UnnamedPayment[]>;
  /** False where no such payment waits. */
  name(name: PaymentName): Promise<boolean>;
}

/** `call` takes names of functions in schema webhook. */
export function createUnnamedPaymentStore(call: CallFunction): UnnamedPaymentStore {
  return {
    list: (limit) => call<UnnamedPayment>('payments_without_user', { p_limit: limit }),
    async name({ tenant, payment, userId, actor, reason }) {
      const [row] = await call<{ name_payment_user: boolean }>('name_payment_user', {
        p_provider: tenant,
        p_object_id: payment,
        p_user_id: userId,
        p_actor: actor,
        p_reason: reason,
      });
      return row?.name_payment_user ?? false;
    },
  };
}

export const MAX_PAYMENTS = 1_000;
const DEFAULT_LIMIT = 100;
const MAX_BODY_BYTES = 4 * 1024;

export const PAYMENTS_QUERY = {
  type: 'object',
  properties: { limit: { type: 'integer', minimum: 1, maximum: MAX_PAYMENTS } },
  additionalProperties: false,
} as const satisfies Schema;

export const NAME_BODY = {
  type: 'object',
  properties: {
    tenant: { type: 'string', minLength: 1, maxLength: 127 },
    payment: { type: 'string', minLength: 1, maxLength: 500 },
    user_id: { type: 'string', minLength: 1, maxLength: 200 },
    reason: REASON,
  },
  required: ['tenant', 'payment', 'user_id'],
  additionalProperties: false,
} as const satisfies Schema;

export function unnamedPaymentRoutes(
  prefix: string,
  store: UnnamedPaymentStore,
  authorize: Authorize,
): OperatorRoute[] {
  const list = async (request: HttpRequest): Promise<HttpResponse> => {
    await authorize(request);
    const { limit = DEFAULT_LIMIT } = readQuery(request.query, PAYMENTS_QUERY);
    return jsonResponse(200, { payments: await store.list(limit) });
  };
  const name = async (request: HttpRequest): Promise<HttpResponse> => {
    const caller = await authorize(request);
    const { tenant, payment, user_id: userId, reason = null } = readJson(request, NAME_BODY);
    const actor = operatorOf(request) ?? caller;
    if (await store.name({ tenant, payment, userId, actor, reason }))
      return jsonResponse(200, { named: true });
    throw new HttpError('not_found', 'No such payment waits for its user.');
  };
  return operatorRoutes(prefix, MAX_BODY_BYTES, [
    ['GET', '/payments', list],
    ['POST', '/payments/name', name],
  ]);
}
