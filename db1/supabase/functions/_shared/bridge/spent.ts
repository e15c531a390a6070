// Messages whose attempts are used up.

import type { CommitContext } from './commit.ts';
import type { Delivery } from './delivery.ts';
import { endByTicket } from './tickets.ts';

/**
 * Ends each: committed where the ledger has its ticket, else as a dead letter. While the ledger cannot be asked nobody
 * dies. A commit hook cannot be asked at all: its pools' messages are dead letters, whatever it did with them.
 */
export async function endSpent(deliveries: readonly Delivery[], context: CommitContext): Promise<void> {
  const inLedger: Delivery[] = [];
  for (const delivery of deliveries) {
    if (delivery.config.commit_webhook_url === null) inLedger.push(delivery);
    else delivery.end('dead_letter', delivery.lastError);
  }
  await endByTicket(inLedger, context, (delivery) => delivery.end('dead_letter', delivery.lastError));
}
