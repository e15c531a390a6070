// Where something about a user can stand: the ledger and every cell. Each has the same list of places (audit.personal_places).

import type { CallFunction } from '../call_function.ts';
import type { Clock } from '../ports.ts';

/** `call` takes names of functions in schema public. */
export interface UserDatabase {
  readonly name: string;
  readonly call: CallFunction;
}

export interface UserPorts {
  readonly ledger: UserDatabase;
  /** All of them, and each has to answer. */
  readonly cells: readonly UserDatabase[];
  readonly now: Clock;
  readonly pause: (ms: number) => Promise<void>;
}

/** Verified and unverified users of one name are two users. */
export type Namespace = 'both' | 'verified' | 'unverified';

/** Whose data it is, and who asks for it. */
export interface UserRequest {
  readonly userId: string;
  readonly namespace: Namespace;
  readonly actor: string;
  readonly reason: string | null;
}

/** As the functions take it. */
export function verifiedOf(namespace: Namespace): boolean | null {
  return namespace === 'both' ? null : namespace === 'verified';
}

/** The ledger is db2; the only cell is db1, and several have their names. */
export function userDatabases(
  ledger: CallFunction,
  cells: readonly UserDatabase[],
): Pick<UserPorts, 'ledger' | 'cells'> {
  return {
    ledger: { name: 'db2', call: ledger },
    cells: cells.map(({ name, call }) => ({ name: cells.length === 1 ? 'db1' : name, call })),
  };
}
