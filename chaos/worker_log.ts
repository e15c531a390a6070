// Workers say at the end of each delivery, and of each try of an event, what became of it. Their logs (SLUICE_LOG=debug) are evidence of what each of
// them believed, which the databases do not keep.

import type { EventFinish, Finish, LostLease } from './history.ts';

export type WorkerLog = { finishes: Finish[]; eventFinishes: EventFinish[]; lostLeases: LostLease[] };

const LOST = 'lost_lease';

/** Reads what one worker has logged. Lines that are no JSON (a kill cuts the last one) say nothing. */
export function readWorkerLog(worker: string, text: string, startedAtMs: number): WorkerLog {
  const log: WorkerLog = { finishes: [], eventFinishes: [], lostLeases: [] };
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
    } else if (entry.message === 'event processed') {
      const eventId = String(entry.event_id);
      const [attempts, takeovers] = [Number(entry.attempts), Number(entry.takeovers)];
      const result = String(entry.result);
      log.eventFinishes.push({ worker, eventId, attempts, takeovers, result, at });
      if (result === LOST) log.lostLeases.push({ worker, kind: 'webhook', ids: [eventId], at });
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
