// The doctor's look at an audit log: is each sealed row what it was.

import { blameOf } from '#core/failure.ts';
import { describeFault, findFaults, readChain } from '../audit/chain.ts';
import type { Database } from '../db/database.ts';
import { type Finding, fail, ok, skip, warn } from './finding.ts';

/** Workers seal every five seconds; pg_cron every minute. */
const LATE_SEC = 600;
const SHOWN_FAULTS = 5;

export async function examineChain(place: 'db1' | 'db2', db: Database): Promise<Finding> {
  const check = `${place} audit chain`;
  try {
    const state = await readChain(db);
    const faults = await findFaults(db, state);
    if (faults.length > 0) {
      const more = faults.length > SHOWN_FAULTS ? `, and ${faults.length - SHOWN_FAULTS} more` : '';
      return fail(
        check,
        faults.slice(0, SHOWN_FAULTS).map(describeFault).join(', ') + more,
        'compare with a backup: what was sealed was changed in the database itself; `sluice audit check` names every row',
      );
    }
    const found = `${state.seals} rows sealed, head ${state.head}`;
    if (state.oldest_unsealed_sec > LATE_SEC)
      return warn(
        check,
        `${found}; ${state.unsealed} not sealed, the oldest for ${Math.round(state.oldest_unsealed_sec)} s`,
        'run `sluice work`, and end transactions that stay open with a row of the audit log',
      );
    return ok(check, found);
  } catch (error) {
    if (blameOf(error) !== 'denied') throw error;
    return skip(check, "only the owner may look: give the owner's address");
  }
}
