// Whether both databases can serve: each answers, and is the primary.

import { SQLSTATE } from '#core/failure.ts';
import type { Database } from '../db/database.ts';
import { ConnectionLost } from '../db/lost.ts';

export async function checkReady(db1: Database, db2: Database): Promise<void> {
  const [[intake], [ledger]] = await Promise.all([
    db1.call<{ intake_ready: boolean }>('public.intake_ready', {}),
    db2.call<{ ledger_ready: boolean }>('public.ledger_ready', {}),
  ]);
  if (!intake?.intake_ready || !ledger?.ledger_ready)
    throw new ConnectionLost('a database is a standby', SQLSTATE.notPrimary);
}
