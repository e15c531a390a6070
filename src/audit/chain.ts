// The chain of sealed audit rows of one database: where it stands, and what does not fit.

import type { Database } from '../db/database.ts';

/** A row of audit.chain_state. */
export interface ChainState {
  readonly begins_after: number;
  readonly sealed_to: number;
  readonly seals: number;
  /** In hex. */
  readonly head: string;
  readonly unsealed: number;
  readonly oldest_unsealed_sec: number;
}

/** A row of audit.chain_faults; log_id is null where the fault is the head's. */
export interface ChainFault {
  readonly log_id: number | null;
  readonly fault: string;
}

/** What one saves elsewhere: a chain that was made anew does not have it. */
export interface Head {
  readonly seals: number;
  readonly head: string;
}

/** A second of hashing, or less. */
const IDS_AT_ONCE = 20_000;
/** A log that was rewritten as a whole is one finding, not a million. */
const MAX_FAULTS = 100;

export async function readChain(db: Database): Promise<ChainState> {
  const [state] = await db.call<ChainState>('audit.chain_state', {});
  if (state === undefined) throw new Error('the chain of the audit log has no state');
  return state;
}

/** Up to 100 faults, by id. `saved` is a head that was written down earlier. */
export async function findFaults(db: Database, state: ChainState, saved?: Head): Promise<ChainFault[]> {
  const faults: ChainFault[] = [];
  for (let after = state.begins_after; after < state.sealed_to; after += IDS_AT_ONCE) {
    const p_to = Math.min(after + IDS_AT_ONCE, state.sealed_to);
    faults.push(...(await db.call<ChainFault>('audit.chain_faults', { p_after: after, p_to })));
    if (faults.length >= MAX_FAULTS) return faults.slice(0, MAX_FAULTS);
  }
  if (state.seals > 0 && (await headAfter(db, state.seals)) !== state.head)
    faults.push({ log_id: null, fault: `the head does not fit seal ${state.seals}` });
  if (saved !== undefined && saved.seals > 0 && (await headAfter(db, saved.seals)) !== saved.head)
    faults.push({
      log_id: null,
      fault: `the head that was saved after ${saved.seals} seals is not in the chain`,
    });
  return faults;
}

async function headAfter(db: Database, p_seals: number): Promise<string | null> {
  const [row] = await db.call<{ head_after: string | null }>('audit.head_after', { p_seals });
  return row?.head_after ?? null;
}

export function describeFault({ log_id, fault }: ChainFault): string {
  return log_id === null ? fault : `row ${log_id}: ${fault}`;
}
