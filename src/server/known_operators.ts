// Whose keys this server knows: SLUICE_ADMIN_KEY, and those of the operators in the intake, as they were when it last answered.

import { createHash, randomBytes } from 'node:crypto';
import type { CallFunction } from '#core/call_function.ts';
import { FIRST_OPERATOR } from '#core/operator.ts';
import type { Clock, Log } from '#core/ports.ts';
import type { Operator, Role } from '#core/roles.ts';
import { Refreshed } from './refreshed.ts';

/** A row of public.known_operators. */
export interface OperatorRow {
  readonly name: string;
  readonly role: Role;
  readonly key_hash: Buffer;
  readonly is_revoked: boolean;
  readonly age_sec: number;
}

/** Last used is shown in minutes. */
const USED_EVERY_MS = 60_000;

/** A key is known by its hash, also to a session: hashes are looked up, so a guess learns nothing from the time it takes. */
export function hashOfKey(key: string): string {
  return createHash('sha256').update(key).digest('base64url');
}

const KEY_BYTES = 32;

/** The key goes to its person, the hash into the database. */
export function newKey(): { key: string; hash: Uint8Array } {
  const key = `slo_${randomBytes(KEY_BYTES).toString('base64url')}`;
  return { key, hash: Buffer.from(hashOfKey(key), 'base64url') };
}

export class KnownOperators {
  readonly #first: readonly [hash: string, operator: Operator];
  readonly #intake: CallFunction | undefined;
  readonly #now: Clock;
  readonly #log: Log | undefined;
  readonly #refreshed: Refreshed | undefined;
  readonly #usedMs = new Map<string, number>();
  #byHash: ReadonlyMap<string, Operator> = new Map();

  /** Without an intake it knows the admin key alone. */
  constructor(adminKey: string, now: Clock, intake?: CallFunction, log?: Log) {
    this.#first = [hashOfKey(adminKey), { name: FIRST_OPERATOR, role: 'admin' }];
    this.#now = now;
    this.#intake = intake;
    this.#log = log;
    this.#refreshed = intake && new Refreshed(() => this.#read(intake), now, log);
  }

  /** Who has the key of this hash; a key that was made or revoked elsewhere counts within a second. */
  async find(hash: string): Promise<Operator | undefined> {
    const [first, operator] = this.#first;
    if (hash === first) return operator;
    await this.#refreshed?.settled();
    const found = this.#byHash.get(hash);
    if (found !== undefined) this.#tellUsed(found);
    return found;
  }

  /** By what is known here and now, without waiting. */
  isKnown(hash: string): boolean {
    void this.#refreshed?.touch();
    return hash === this.#first[0] || this.#byHash.has(hash);
  }

  async #read(intake: CallFunction): Promise<void> {
    const rows = await intake<OperatorRow>('known_operators', {});
    this.#byHash = new Map(
      rows
        .filter(({ is_revoked }) => !is_revoked)
        .map(({ name, role, key_hash }) => [key_hash.toString('base64url'), { name, role }]),
    );
  }

  /** Not waited for: an operator is not kept waiting for a note. */
  #tellUsed({ name }: Operator): void {
    const now = this.#now();
    if (now - (this.#usedMs.get(name) ?? Number.NEGATIVE_INFINITY) < USED_EVERY_MS) return;
    this.#usedMs.set(name, now);
    this.#intake?.('operator_used', { p_name: name }).catch((error) =>
      this.#log?.debug('when an operator was last here is not written down', { cause: error }),
    );
  }
}
