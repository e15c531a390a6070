import type { Ledger } from '#core/bridge/ports.ts';
import type { Database } from '../db/database.ts';

type Outcome = 'committed' | 'already' | 'conflict';

/** DB2 as the bridge sees it, over a plain connection. */
export function createLedger(db2: Database): Ledger {
  return {
    async finalizeBatch(payloads) {
      const rows = await db2.call<{ ordinal: number; outcome: Outcome }>('public.finalize_batch', {
        p_payloads: JSON.stringify(payloads),
      });
      if (rows.length !== payloads.length) {
        throw new Error(`${payloads.length} payloads gave ${rows.length} rows`);
      }
      const outcomes = new Array<Outcome>(rows.length);
      for (const row of rows) outcomes[row.ordinal - 1] = row.outcome;
      return outcomes;
    },
    async call(functionName, payload) {
      const name = functionName.includes('.') ? functionName : `public.${functionName}`;
      await db2.call(name, { p_payload: JSON.stringify(payload) });
    },
  };
}
