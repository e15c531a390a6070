// Keeps DB2's copy of the operators, for commands that reach DB2 alone. Any number of servers may: the later reading stays.

import type { CallFunction } from '#core/call_function.ts';
import type { Log } from '#core/ports.ts';
import { type Loop, startLoop } from '../loop.ts';
import type { OperatorRow } from './known_operators.ts';

const COPY_EVERY_MS = 10_000;

export function startOperatorCopy(db1: CallFunction, db2: CallFunction, log: Log): Loop {
  return startLoop('copying the operators to DB2', COPY_EVERY_MS, log, () => copyOperators(db1, db2));
}

/** `db1` and `db2` call functions of schema public. */
export async function copyOperators(db1: CallFunction, db2: CallFunction): Promise<void> {
  const p_read_at = new Date().toISOString();
  const rows = await db1<OperatorRow>('known_operators', {});
  const p_operators = rows.map(({ key_hash, ...row }) => ({ ...row, key_hash: key_hash.toString('hex') }));
  // As text: the driver would write a list without members as an array of Postgres.
  await db2('copy_operators', { p_operators: JSON.stringify(p_operators), p_read_at });
}
