// What a site signs: its id, the time and the raw body, in one string. All three are inside, so that a signature cannot be
// carried over to another site, kept for later, or put under another body.

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

const encoder = new TextEncoder();

/** The value of x-ops-signature. */
export async function signCall(call: SignedCall, secret: string, port: HmacPort): Promise<string> {
  return hexOf(await port.hmac('SHA-256', encoder.encode(secret), signedBytes(call)));
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
  const given = encoder.encode(signature);
  for (const secret of secrets) {
    if (sameBytes(encoder.encode(await signCall(call, secret, port)), given)) return undefined;
  }
  return 'bad_signature';
}

/** What the database knows a signature by. */
export async function hashOfSignature(signature: string, port: HmacPort): Promise<string> {
  return hexOf(await port.sha256(encoder.encode(signature)));
}

function signedBytes({ site, timestamp, body }: SignedCall): Uint8Array {
  const head = encoder.encode(`${site}.${timestamp}.`);
  const bytes = new Uint8Array(head.length + body.length);
  bytes.set(head);
  bytes.set(body, head.length);
  return bytes;
}

function hexOf(bytes: Uint8Array): string {
  let hex = '';
  for (const byte of bytes) hex += byte.toString(16).padStart(2, '0');
  return hex;
}
