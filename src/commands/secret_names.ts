// Secrets on the command line: by name, and what rotating them means, the same for endpoints and for call sites.

import { check, SchemaError } from '#core/schema.ts';
import { SECRET_NAME } from '#core/webhook/endpoint_settings.ts';
import { UsageError } from './usage_error.ts';

const MAX_SECRETS = 5;

/** What is no name may be the secret itself, so it is not repeated. */
export function readSecretNames(option: string, names: readonly string[]): string[] {
  try {
    for (const name of names) check(SECRET_NAME, name);
    return [...names];
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    throw new UsageError(
      `${option} takes the name of an environment variable, such as STRIPE_WEBHOOK_SECRET, never the secret itself`,
    );
  }
}

/** The given ones first; those of before stay good, as far as there is room, until `only`: a sender changes later than we do. */
export function rotated(given: readonly string[], known: readonly string[], only: boolean): string[] {
  const kept = only ? [] : known;
  return [...new Set([...given, ...kept])].slice(0, Math.max(MAX_SECRETS, given.length));
}
