// The request of a hook: who sent it is proven by the headers of Standard Webhooks (https://www.standardwebhooks.com), where
// the worker has a secret.

import type { HookCall } from './ports.ts';

/** What the library of the specification does with one secret. */
export interface SigningKey {
  sign(id: string, timestamp: Date, body: string): string;
}

/** The header webhook-signature: a signature with each secret, separated by spaces. */
export type SignHook = (id: string, timestampSec: number, body: string) => string;

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
/** The specification's range. A shorter one can be guessed, a longer one is a pasted mistake. */
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;
const MS_PER_SEC = 1_000;

/**
 * `secrets` is one, or several separated by spaces: receivers accept any of the signatures, so that a secret can be changed
 * while both sides work. Undefined if there are none. Throws a TypeError for an invalid secret; it names the secret's place,
 * never the secret.
 */
export function createSign(
  secrets: string | undefined,
  open: (secret: string) => SigningKey,
): SignHook | undefined {
  const words = (secrets ?? '').split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return undefined;
  const keys = words.map((secret, at) => {
    const bytes = keyBytes(secret);
    if (bytes === undefined || bytes < MIN_KEY_BYTES || bytes > MAX_KEY_BYTES)
      throw new TypeError(
        `secret ${at + 1} of ${words.length} is not whsec_ and ${MIN_KEY_BYTES} to ${MAX_KEY_BYTES} bytes in base64`,
      );
    return open(secret);
  });
  return (id, timestampSec, body) => {
    const timestamp = new Date(timestampSec * MS_PER_SEC);
    return keys.map((key) => key.sign(id, timestamp, body)).join(' ');
  };
}

/** How many bytes its base64 stands for; undefined if it is not base64. */
function keyBytes(secret: string): number | undefined {
  const base64 = SECRET.exec(secret)?.[1];
  if (base64 === undefined || base64.length % 4 !== 0) return undefined;
  return atob(base64).length;
}

/** Without a secret the receiver gets the key and the claim's id alone, and cannot know who sent them. */
export function headersOf(
  {
    id,
    idempotencyKey,
    claimId,
    traceparent,
  }: Pick<HookCall, 'id' | 'idempotencyKey' | 'claimId' | 'traceparent'>,
  body: string,
  sign: SignHook | undefined,
  nowMs: number,
): Record<string, string> {
  const headers = {
    'content-type': 'application/json',
    'x-idempotency-key': idempotencyKey,
    'x-claim-id': claimId,
    ...(traceparent !== undefined && { traceparent }),
  };
  if (sign === undefined) return headers;
  const timestampSec = Math.floor(nowMs / MS_PER_SEC);
  return {
    ...headers,
    'webhook-id': id,
    'webhook-timestamp': String(timestampSec),
    'webhook-signature': sign(id, timestampSec, body),
  };
}
