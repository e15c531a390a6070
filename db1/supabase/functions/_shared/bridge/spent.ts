// Messages whose attempts are used up. A worker that died between the ledger's commit and the finish left a ticket behind:
// such a message is no dead letter, and only the ledger knows.

import { type CommitContext, LEDGER } from './commit.ts';
import type { Delivery } from './delivery.ts';

/**
 * Ends each: committed where the ledger has its ticket, else as a dead letter. While the ledger cannot be asked nobody
 * dies. A commit webhook cannot be asked at all: its pools' messages are dead letters, whatever it did with them.
 */
export async function endSpent(deliveries: readonly Delivery[], context: CommitContext): Promise<void> {
  const inLedger: Delivery[] = [];
  for (const delivery of deliveries) {
    if (delivery.config.commit_webhook_url === null) inLedger.push(delivery);
    else delivery.end('dead_letter', delivery.lastError);
  }
  if (inLedger.length === 0 || context.signal.aborted) return;
  const breaker = context.breakerOf(LEDGER);
  if (breaker.openUntilMs > 0) {
    for (const delivery of inLedger) delivery.end('outage', 'ledger unavailable');
    return;
  }
  try {
    const tickets = await context.ledger().ticketsOf(inLedger.map((delivery) => delivery.payload));
    for (const [index, delivery] of inLedger.entries()) {
      const ticket = tickets[index];
      if (ticket === 'already') delivery.end('committed');
      else delivery.end('dead_letter', ticket === 'conflict' ? 'ticket_conflict' : delivery.lastError);
    }
  } catch (error) {
    // Whatever it is, it is not the messages': they were only asked about.
    breaker.outage();
    context.log.warn('the ledger is unavailable', { messages: inLedger.length, cause: error });
    for (const delivery of inLedger) delivery.end('outage', 'ledger unavailable');
  }
}
