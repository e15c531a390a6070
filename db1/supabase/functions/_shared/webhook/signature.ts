// The part of verification that all providers share. A provider says what its headers claim (which signatures, over which
// bytes, of what time); here every secret is tried against every signature, in constant time, and the time is checked.

import { prepend } from './bytes.ts';
import { type HashName, sameBytes } from './hmac.ts';
import type { Refusal, SignedRequest, Verification, VerifyContext } from './provider.ts';

/** How far a timestamp may lie from now, on both sides. */
export const TOLERANCE_SEC = 300;
/** Seconds since 1970 in plain digits. Eleven last until the year 5138; milliseconds have thirteen. */
const TIMESTAMP = /^[1-9][0-9]{0,10}$/;

export interface GivenSignature {
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** What a request claims, before anything is believed. */
export interface Claimed {
  readonly hash: HashName;
  /** Any of them may match. */
  readonly signatures: readonly GivenSignature[];
  /** The signed bytes. More than one where the provider is known to sign variants. */
  readonly messages: readonly Uint8Array[];
  /** Seconds. It must be part of the message. */
  readonly timestamp?: number;
  readonly toleranceSec?: number;
}

export class Refused extends Error {
  override readonly name = 'Refused';
  readonly reason: Refusal;

  constructor(reason: Refusal, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

/** The header's one value. */
export function signatureHeader({ headers }: Pick<SignedRequest, 'headers'>, name: string): string {
  const value = headers[name];
  if (value === undefined || value === '')
    throw new Refused('missing_signature', `the header ${name} is missing`);
  if (typeof value !== 'string')
    throw new Refused('malformed_signature', `the header ${name} came more than once`);
  return value;
}

export function timestampFrom(text: string): number {
  if (!TIMESTAMP.test(text))
    throw new Refused('malformed_signature', 'the timestamp is not a plain number of whole seconds');
  return Number(text);
}

/** What most providers sign: something that holds the time, then the body. */
export function timedClaim(
  signatures: readonly GivenSignature[],
  before: string,
  body: Uint8Array,
  timestamp: string,
): Claimed {
  return {
    hash: 'SHA-256',
    signatures,
    messages: [prepend(before, body)],
    timestamp: timestampFrom(timestamp),
  };
}

/** One signature in its only spelling. */
export function signatureFrom(
  text: string,
  decode: (text: string) => Uint8Array | undefined,
  hash: HashName = 'SHA-256',
): GivenSignature {
  const bytes = decode(text);
  if (bytes?.length !== (hash === 'SHA-256' ? 32 : 20))
    throw new Refused('malformed_signature', 'the signature is not in its canonical spelling');
  return { text, bytes };
}

export function withoutPrefix(text: string, prefix: string): string {
  if (!text.startsWith(prefix))
    throw new Refused('malformed_signature', `the signature does not begin with ${prefix}`);
  return text.slice(prefix.length);
}

/**
 * Reads the claim and tries it. `keyOf` turns a secret into a key, or undefined if it cannot be one. An empty key is skipped:
 * anyone can sign with it.
 */
export async function verifyClaim(
  read: () => Claimed,
  secrets: readonly string[],
  keyOf: (secret: string) => Uint8Array | undefined,
  context: VerifyContext,
): Promise<Verification> {
  let claimed: Claimed;
  try {
    claimed = read();
  } catch (error) {
    if (error instanceof Refused) return { ok: false, reason: error.reason, detail: error.message };
    throw error;
  }
  let keys = 0;
  for (const [secret, text] of secrets.entries()) {
    const key = keyOf(text);
    if (key === undefined || key.length === 0) continue;
    keys++;
    const signature = await findMatch(claimed, key, context);
    if (signature !== undefined) return freshness(claimed, context) ?? { ok: true, secret, signature };
  }
  if (keys === 0) return { ok: false, reason: 'no_secret', detail: 'no usable secret is configured' };
  const detail = `none of ${claimed.signatures.length} signatures fits any of ${keys} secrets`;
  return { ok: false, reason: 'bad_signature', detail };
}

async function findMatch(
  { hash, messages, signatures }: Claimed,
  key: Uint8Array,
  { port }: VerifyContext,
): Promise<string | undefined> {
  for (const message of messages) {
    const expected = await port.hmac(hash, key, message);
    const match = signatures.find(({ bytes }) => sameBytes(bytes, expected));
    if (match !== undefined) return match.text;
  }
  return undefined;
}

/** Called after the signature is verified, so that only the holder of a secret learns what our clock says. */
function freshness(
  { timestamp, toleranceSec = TOLERANCE_SEC }: Claimed,
  { nowSec }: VerifyContext,
): Verification | undefined {
  if (timestamp === undefined) return undefined;
  const ageSec = nowSec - timestamp;
  if (Math.abs(ageSec) <= toleranceSec) return undefined;
  const where = ageSec > 0 ? `${ageSec} s old` : `${-ageSec} s in the future`;
  return {
    ok: false,
    reason: 'stale',
    detail: `the timestamp is ${where}; ${toleranceSec} s are allowed on both sides`,
  };
}
