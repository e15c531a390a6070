// Which endpoints and call sites use which secrets, and what is wrong with those as seen from here.

import { createSiteStore } from '#core/calls/operators.ts';
import { namedSecrets } from '#core/webhook/admin.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import {
  createFindSecret,
  minSecretChars,
  type ReadSecret,
  type SecretSource,
  Secrets,
} from '#core/webhook/secrets.ts';
import type { Database } from '../db/database.ts';

/** One secret of an endpoint or call site that is switched on. */
export interface SecretUse {
  /** Of the endpoint or the site. */
  readonly user: string;
  readonly secret: string;
  readonly read: ReadSecret;
}

export function secretsOf(db2: Database, secretOf: SecretSource): Secrets {
  const findSecret = createFindSecret((name, args) => db2.call(`webhook.${name}`, args));
  return new Secrets({ findSecret, secretOf, now: Date.now });
}

export async function secretUses(db2: Database, secretOf: SecretSource): Promise<SecretUse[]> {
  const endpoints = await createOperatorStore((name, args) =>
    db2.call(`webhook.${name}`, args),
  ).listEndpoints();
  const sites = await createSiteStore((name, args) => db2.call(`calls.${name}`, args)).allSites();
  const needs = [
    ...endpoints
      .filter(({ is_active }) => is_active)
      .flatMap((endpoint) =>
        namedSecrets(endpoint).map((secret) => ({
          user: endpoint.name,
          secret,
          minChars: minSecretChars(providerNamed(endpoint.provider)),
        })),
      ),
    ...sites
      .filter(({ is_active }) => is_active)
      .flatMap(({ site_id: user, secret_names }) =>
        secret_names.map((secret) => ({ user, secret, minChars: minSecretChars() })),
      ),
  ];
  const secrets = secretsOf(db2, secretOf);
  return Promise.all(
    needs.map(async ({ user, secret, minChars }) => ({
      user,
      secret,
      read: await secrets.read(secret, minChars),
    })),
  );
}
