// Secrets of endpoints and call sites. A name has to be on the list that the owner of DB2 keeps, and a value has to be long
// enough. The value is Vault's where the database has one, else what the runtime knows by that name.

import { AnswerCache } from '../answer_cache.ts';
import type { CallFunction } from '../call_function.ts';
import { HttpError } from '../errors.ts';
import type { Clock, Log } from '../ports.ts';
import { RareLines } from '../rare_lines.ts';
import type { Provider } from './provider.ts';

/** What the runtime knows by a secret's name; undefined where it is not set. */
export type SecretSource = (name: string) => string | undefined;

/** A row of webhook.find_secret. */
export interface FoundSecret {
  readonly is_allowed: boolean;
  /** Vault's; null where it has none. */
  readonly value: string | null;
  /** DB2 is away: the value is one that DB2's Vault had once, or that is kept beside it, and may have been replaced since. */
  readonly isCopy?: boolean;
  /** Of a copy: whether DB2's Vault has a value. */
  readonly inVault?: boolean;
}

export type FindSecret = (name: string) => Promise<FoundSecret>;

export interface SecretPorts {
  readonly findSecret: FindSecret;
  readonly secretOf: SecretSource;
  readonly now: Clock;
}

export type SecretFault = 'not_allowed' | 'not_set' | 'too_short';

/** A shorter one can be guessed, also where its characters are words. */
const MIN_SECRET_CHARS = 16;
/** While the look for a secret takes long, the last answer is believed for so long. */
const STALE_MS = 60_000;
/** A provider that delivers often would otherwise write a line for each delivery while a secret is exchanged. */
const TELL_EVERY_MS = 60_000;

export const SECRET_FAULTS: Readonly<Record<SecretFault, string>> = {
  not_allowed: 'is not on the list of secrets, which the owner of DB2 keeps: sluice webhooks secrets allow',
  not_set: 'is not set',
  too_short: 'is too short to be a secret',
};

export type ReadSecret = ({ readonly value: string } | { readonly fault: SecretFault }) & {
  /** Only DB2 knows whether its Vault has another value by now. */
  readonly mayBeOld?: true;
};

export interface GoodSecrets {
  readonly values: readonly string[];
  /** False while DB2 is away and its Vault may have another value: a signature that fits none of these may be good all the same. */
  readonly areAll: boolean;
}

/** Characters that a secret has at least. Call sites have no provider. */
export function minSecretChars(provider?: Provider): number {
  return Math.max(provider?.minSecretChars ?? 0, MIN_SECRET_CHARS);
}

/**
 * Throws where nothing can be said without DB2: a signature must not be refused for that. Vault comes first while DB2 is away too:
 * what the runtime knows by the name may be the value that Vault's has replaced.
 */
export function judgeSecret(
  { is_allowed, value, isCopy = false, inVault = false }: FoundSecret,
  known: string | undefined,
  minChars: number,
): ReadSecret {
  if (!is_allowed) return { fault: 'not_allowed' };
  const isOfVault = isCopy && inVault;
  const secret = isOfVault ? value : value || known;
  if (!secret && isCopy) throw new HttpError('database_unavailable');
  if (!secret) return { fault: 'not_set' };
  const read = secret.length < minChars ? ({ fault: 'too_short' } as const) : { value: secret };
  return isOfVault ? { ...read, mayBeOld: true } : read;
}

/** A secret that cannot be known while DB2 is away: what another one has signed can be taken all the same. */
function unknown(error: unknown): undefined {
  if (error instanceof HttpError && error.kind.code === 'database_unavailable') return undefined;
  throw error;
}

/** `call` takes names of functions in schema webhook. */
export function createFindSecret(call: CallFunction): FindSecret {
  return async (name) =>
    (await call<FoundSecret>('find_secret', { p_name: name }))[0] ?? { is_allowed: false, value: null };
}

/**
 * Asks the database once a second for each name. A new value, and a name taken off the list, count within that second, or
 * within a minute where the database takes longer to answer.
 */
export class Secrets {
  readonly #ports: SecretPorts;
  readonly #found: AnswerCache<FoundSecret>;
  readonly #faults: RareLines;

  constructor(ports: SecretPorts) {
    this.#ports = ports;
    this.#found = new AnswerCache((name) => ports.findSecret(name), ports.now, STALE_MS);
    this.#faults = new RareLines(ports.now, TELL_EVERY_MS);
  }

  async read(name: string, minChars: number): Promise<ReadSecret> {
    return judgeSecret(await this.#found.get(name), this.#ports.secretOf(name), minChars);
  }

  /** The values of those that are good; each of those that cannot be used is a line in the log, once a minute. */
  async good(
    names: readonly string[],
    minChars: number,
    log: Log,
    where: Record<string, unknown>,
  ): Promise<GoodSecrets> {
    const read = await Promise.all(names.map((name) => this.read(name, minChars).catch(unknown)));
    const values = read.flatMap((secret, at) => {
      if (secret === undefined) return [];
      if ('value' in secret) return [secret.value];
      const name = names[at] ?? '';
      const untold = this.#faults.next(name);
      const fault = SECRET_FAULTS[secret.fault];
      if (untold !== undefined)
        log.error('a secret cannot be used', { ...where, secret: name, fault, ...untold });
      return [];
    });
    return { values, areAll: read.every((secret) => secret !== undefined && secret.mayBeOld !== true) };
  }

  /** A sentence about the first of the names that cannot be used. */
  async faultOf(names: readonly string[], minChars: number): Promise<string | undefined> {
    for (const name of names) {
      const secret = await this.read(name, minChars);
      if ('fault' in secret) return `${name} ${SECRET_FAULTS[secret.fault]}.`;
    }
    return undefined;
  }
}
