// How the server, or something before it, says no. Web globals only.

import type { SluiceRequest } from './request.ts';
import { mayHelp, retryAfterMs } from './retry.ts';

/** Every code with which the buyers' routes refuse. */
export const SERVER_CODES = [
  'address_limit',
  'already_committed',
  'auth_required',
  'auth_unavailable',
  'bad_request',
  'busy',
  'challenge_required',
  'challenge_used',
  'claim_ended',
  'closed',
  'database_unavailable',
  'dead_letter',
  'guests_refused',
  'headers_too_large',
  'hold_over',
  'in_flight',
  'internal',
  'invalid_input',
  'invalid_json',
  'limit',
  'method_not_allowed',
  'not_enough',
  'not_for_payment',
  'not_found',
  'not_yours',
  'overloaded',
  'paid',
  'payment_unavailable',
  'quantity_refused',
  'rate_limited',
  'secret_required',
  'shutting_down',
  'sold_out',
  'timeout',
  'too_large',
  'too_many_attempts',
  'too_many_requests',
  'unknown_claim',
  'unknown_pool',
  'unsupported_media_type',
  'wrong_isolation',
] as const;

/**
 * `no_answer`: nothing came back. `not_sluice`: something in front of the server answered. `unknown`: a newer server has a
 * code that this client does not know; `status`, `message` and `retryable` still hold.
 */
export type SluiceErrorCode = (typeof SERVER_CODES)[number] | 'no_answer' | 'not_sluice' | 'unknown';

function known(code: unknown): SluiceErrorCode {
  return SERVER_CODES.find((one) => one === code) ?? 'unknown';
}

/** The server said no, or nothing. Act on `code`. */
export class SluiceError extends Error {
  override readonly name = 'SluiceError';
  readonly code: SluiceErrorCode;
  /** 0 if no server answered. */
  readonly status: number;
  readonly hint: string;
  /** True where the same call may succeed later. */
  readonly retryable: boolean;
  readonly tries: number;
  readonly #request: SluiceRequest | undefined;

  constructor(refusal: Refusal, tries: number, request?: SluiceRequest) {
    super(refusal.message, { cause: refusal.cause });
    this.code = refusal.code;
    this.status = refusal.status;
    this.hint = refusal.hint;
    this.retryable = refusal.retryable;
    this.tries = tries;
    this.#request = request;
  }

  /** Of a claim: send it again with the next call, and the slot is taken once at most. Not printed: it holds the secret. */
  get request(): SluiceRequest | undefined {
    return this.#request;
  }
}

export interface Refusal {
  readonly code: SluiceErrorCode;
  readonly status: number;
  readonly message: string;
  readonly hint: string;
  readonly retryable: boolean;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

export function noAnswer(cause: unknown): Refusal {
  return {
    code: 'no_answer',
    status: 0,
    message: 'The server did not answer.',
    hint: 'Try again with the same request.',
    retryable: true,
    cause,
  };
}

export function refusalOf(response: Response, text: string): Refusal {
  const { status } = response;
  const after = retryAfterMs(response.headers.get('retry-after'));
  const common = { status, retryable: mayHelp(status, after), retryAfterMs: after };
  try {
    const { code, message, hint } = JSON.parse(text).error;
    return { ...common, code: known(code), message: String(message), hint: String(hint) };
  } catch (cause) {
    return { ...notSluice(status, cause), ...common };
  }
}

/** An answer that is not Sluice's, whatever its status. */
export function notSluice(status: number, cause: unknown): Refusal {
  return {
    code: 'not_sluice',
    status,
    message: `Something in front of the server answered ${status}.`,
    hint: 'Check the url, and the proxy before it.',
    retryable: false,
    cause,
  };
}
