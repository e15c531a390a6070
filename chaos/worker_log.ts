// Workers say at the end of each delivery what became of it. Their logs (SLUICE_LOG=debug) are evidence of what each of
// them believed, which the databases do not keep.

import type { Finish, LostLease } from './history.ts';

export type WorkerLog = { finishes: Finish[]; lostLeases: LostLease[] };

const LOST = 'lost_lease';

/** Reads what one worker has logged. Lines that are no JSON (a kill cuts the last one) say nothing. */
export function readWorkerLog(worker: string, text: string, startedAtMs: number): WorkerLog {
  const log: WorkerLog = { finishes: [], lostLeases: [] };
  for (const line of text.split('\n')) {
    const entry = parse(line);
    if (entry === undefined) continue;
    const at = Date.parse(String(entry.at)) - startedAtMs;
    if (entry.message === 'delivery') {
      const claimId = typeof entry.claim_id === 'string' ? entry.claim_id : null;
      const msgId = String(entry.msg_id);
      const outcome = String(entry.outcome);
      log.finishes.push({ worker, msgId, claimId, readCt: Number(entry.read_ct), outcome, at });
      if (outcome === LOST) log.lostLeases.push({ worker, kind: 'bridge', ids: [claimId ?? msgId], at });
    } else if (entry.message === 'event processed' && entry.result === LOST) {
      log.lostLeases.push({ worker, kind: 'webhook', ids: [String(entry.event_id)], at });
    }
  }
  return log;
}

function parse(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
