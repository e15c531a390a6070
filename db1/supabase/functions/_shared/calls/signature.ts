// What a site signs: its id, the time and the raw body, in one string. All three are inside, so that a signature cannot be
// carried over to another site, kept for later, or put under another body.

import { prepend, toHex, utf8 } from '../webhook/bytes.ts';
import { type HmacPort, sameBytes } from '../webhook/hmac.ts';

/** How far the sender's clock may be from ours, before or after. */
export const TOLERANCE_SEC = 300;

export const SITE_HEADER = 'x-ops-site';
export const TIMESTAMP_HEADER = 'x-ops-timestamp';
export const SIGNATURE_HEADER = 'x-ops-signature';

export interface SignedCall {
  readonly site: string;
  readonly timestamp: string;
  readonly body: Uint8Array;
}

export type SignatureRefusal = 'malformed_signature' | 'malformed_timestamp' | 'stale' | 'bad_signature';

// One spelling only: another one of the same signature would have another hash, and walk past the unique index.
const SIGNATURE = /^[0-9a-f]{64}$/;
/** Whole seconds; milliseconds have three digits more. */
const TIMESTAMP = /^[1-9][0-9]{9}$/;

/** The value of x-ops-signature. */
export async function signCall(
  { site, timestamp, body }: SignedCall,
  secret: string,
  port: HmacPort,
): Promise<string> {
  return toHex(await port.hmac('SHA-256', utf8(secret), prepend(`${site}.${timestamp}.`, body)));
}

/** Undefined where the signature is good: it was made with one of the secrets, and now. */
export async function refusalOfCall(
  call: SignedCall,
  signature: string,
  secrets: readonly string[],
  port: HmacPort,
  nowSec: number,
): Promise<SignatureRefusal | undefined> {
  if (!SIGNATURE.test(signature)) return 'malformed_signature';
  if (!TIMESTAMP.test(call.timestamp)) return 'malformed_timestamp';
  if (Math.abs(nowSec - Number(call.timestamp)) > TOLERANCE_SEC) return 'stale';
  const given = utf8(signature);
  for (const secret of secrets) {
    if (sameBytes(utf8(await signCall(call, secret, port)), given)) return undefined;
  }
  return 'bad_signature';
}

/** What the database knows a signature by. */
export async function hashOfSignature(signature: string, port: HmacPort): Promise<string> {
  return toHex(await port.sha256(utf8(signature)));
}
