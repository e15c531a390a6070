// What a try that ended in an error means for its event. SQL handlers have the same table in webhook.verdict, but for a
// login that is refused, which they cannot meet.

import { type Blame, blameOf } from '../failure.ts';
import type { FinishOutcome } from './ports.ts';

const VERDICTS: Partial<Record<Blame, FinishOutcome>> = {
  permanent: 'dead_letter',
  later: 'later',
  // Two got in each other's way, which says nothing about the event.
  collision: 'again',
  database: 'outage',
  disk: 'outage',
};

export function verdictOf(error: unknown): FinishOutcome {
  return VERDICTS[blameOf(error)] ?? 'failed';
}
