// Whether a database can serve: it answers, and is the primary.

import type { CallFunction } from '#core/call_function.ts';
import { SQLSTATE } from '#core/failure.ts';
import type { Database } from '../db/database.ts';
import { ConnectionLost } from '../db/lost.ts';

/** `call` takes functions of schema public of an intake. */
export async function checkIntake(call: CallFunction): Promise<void> {
  const [row] = await call<{ intake_ready: boolean }>('intake_ready', {});
  if (!row?.intake_ready) throw standby('the intake');
}

export async function checkLedger(db2: Database): Promise<void> {
  const [row] = await db2.call<{ ledger_ready: boolean }>('public.ledger_ready', {});
  if (!row?.ledger_ready) throw standby('the ledger');
}

function standby(which: string): ConnectionLost {
  return new ConnectionLost(`${which} is a standby`, SQLSTATE.notPrimary);
}
