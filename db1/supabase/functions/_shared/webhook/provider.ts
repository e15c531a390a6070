// What the door asks of a provider: is this request really from it, which events does it carry, and (for tests and
// `sluice webhooks send`) how would the provider sign this body.

import type { HmacPort } from './hmac.ts';

export interface SignedRequest {
  readonly method: string;
  /** The address as the provider knows it, with its query. Only Twilio signs it. */
  readonly url: string;
  /** Names in lower case. A list is a header that came more than once. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Uint8Array;
}

/** A signature described by data, for the provider `hmac`. scheme.ts says what each field may hold. */
export interface Scheme {
  readonly header: string;
  readonly algorithm: 'sha256' | 'sha1';
  readonly encoding: 'hex' | 'base64';
  /** What stands before the signature in its header, such as `sha256=`. */
  readonly prefix: string;
  readonly timestamp_header: string | null;
  /** The signed text, such as `{timestamp}.{body}`. */
  readonly signed: string;
  /** Where the event's id stands: a JSON pointer (`/id`) or the name of a header. */
  readonly id: string;
  /** A JSON pointer. */
  readonly type: string | null;
  readonly tolerance_sec: number;
  readonly secret_encoding: 'utf8' | 'base64' | 'hex';
}

export interface VerifyContext {
  readonly port: HmacPort;
  readonly nowSec: number;
  readonly scheme?: Scheme;
}

export type Refusal =
  | 'missing_signature'
  | 'malformed_signature'
  | 'bad_signature'
  | 'stale'
  | 'no_secret'
  | 'body_hash_mismatch';

export type Verification =
  | {
      readonly ok: true;
      /** Which of the secrets matched, counted from 0. */
      readonly secret: number;
      /** The one signature that matched, in its canonical spelling. */
      readonly signature: string;
    }
  | {
      readonly ok: false;
      readonly reason: Refusal;
      /** A sentence for the log and the operator. It never holds a secret or an expected signature. */
      readonly detail: string;
    };

export interface ReadEvent {
  readonly eventId: string;
  readonly eventType: string;
  readonly occurredAt: string | null;
  /** JSON text; null: the body itself is it, or nothing is (see quarantine). */
  readonly payload: string | null;
  /** SHA-256 in hex of what identifies the content, to tell a redelivery from another body under the same id. */
  readonly hash: string;
  /** A second key, where the id is not signed: the same signed bytes under another id are no new event (of Shopify, of one topic). */
  readonly dedupeHash: string | null;
  /** Why the event is kept as bytes only. */
  readonly quarantine: string | null;
}

export interface Reply {
  readonly contentType: string;
  readonly empty: string;
}

/** Of a tenant, which is what stands in the provider column of events, payments and credits: `stripe`, `stripe:shop`. */
export function providerOf(tenant: string): string {
  return tenant.split(':', 1)[0] ?? tenant;
}

export interface Provider {
  readonly name: string;
  /** Where a secret of this provider is never shorter. */
  readonly minSecretChars?: number;
  /** Takes application/x-www-form-urlencoded besides JSON. */
  readonly takesForms?: boolean;
  /** Signs the address too, so the address has to come from us: what a request says about itself proves nothing. */
  readonly signsUrl?: boolean;
  /** Throws JsonError where the body has to be read for it and cannot be. */
  verify(
    request: SignedRequest,
    secrets: readonly string[],
    context: VerifyContext,
  ): Verification | Promise<Verification>;
  /**
   * To be called after verification. Never throws for a strange body: what jsonb cannot keep becomes one event with a
   * quarantine. Throws JsonError only for a body that is not JSON or not UTF-8 (the door keeps the bytes and answers 400).
   */
  read(request: SignedRequest, context: VerifyContext): ReadEvent[] | Promise<ReadEvent[]>;
  /** After verification: what the provider wants to hear back before it sends events; undefined for an event. */
  challenge?(request: SignedRequest): string | undefined;
  /**
   * The form of the 2xx for these recorded events, for a provider that reads it (Twilio reads TwiML). Its `empty` is the body if no
   * handler gave another. Undefined: the provider reads only the status, and gets our own JSON.
   */
  reply?(events: readonly ReadEvent[]): Reply | undefined;
  /** The headers with which the provider would send this body: tests, `sluice webhooks send`, docs. */
  sign(
    request: Omit<SignedRequest, 'headers'>,
    secret: string,
    context: VerifyContext,
  ): Record<string, string> | Promise<Record<string, string>>;
}
