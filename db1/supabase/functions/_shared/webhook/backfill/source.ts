// What a provider can be asked about: the deliveries it made, or should have made, in a stretch of time.

import type { SignedRequest } from '../provider.ts';
import type { Ask } from './ask.ts';

const SEC_MS = 1_000;

/** Whole seconds, as providers count: `since` is in it, `until` is not. */
export interface Stretch {
  readonly since: Date;
  readonly until: Date;
}

export function stretchOf(sinceMs: number, untilMs: number): Stretch {
  return {
    since: new Date(Math.floor(sinceMs / SEC_MS) * SEC_MS),
    until: new Date(Math.ceil(untilMs / SEC_MS) * SEC_MS),
  };
}

/** What of a row of public.webhook_endpoints matters here. */
export interface AskingEndpoint {
  readonly webhook_id: string;
  readonly name: string;
  readonly provider: string;
  readonly tenant: string;
  readonly livemode: string;
  readonly accounts: readonly string[];
  /** Null: the provider's usual name, where the endpoint has the provider's own tenant. */
  readonly api_key_name: string | null;
}

/** A request as the provider would have delivered it, but for its signature: it was asked for over TLS, with our key. */
export type Fetched = Pick<SignedRequest, 'method' | 'url' | 'headers' | 'body'>;

export interface Access {
  readonly headers: Readonly<Record<string, string>>;
  /** Whose records are asked for. What is left out is the account that the key belongs to. */
  readonly accounts: readonly string[];
}

export interface Source {
  readonly title: string;
  /** The usual name of the key. */
  readonly keyName: string;
  /** The variable that moves the API, and where it is without. */
  readonly urlVariable: string;
  readonly url: string;
  /** What a key has to allow. */
  readonly rights: string;
  /** How many days back the provider has an answer; undefined where it does not say. */
  readonly keepsDays?: number;
  /** Throws SourceError where the key cannot be one for this endpoint. */
  access(key: string, endpoint: AskingEndpoint, keyName: string): Access;
  /** A page at a time. */
  list(ask: Ask, stretch: Stretch, accounts: readonly string[]): AsyncGenerator<Fetched[]>;
}
