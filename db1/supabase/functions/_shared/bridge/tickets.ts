// What the ledger has already. A worker that died between the ledger's commit and the finish left a ticket behind, and
// only the ledger knows.

import type { CommitContext } from './commit.ts';
import type { Delivery } from './delivery.ts';
import { LEDGER } from './targets.ts';

/**
 * Ends each: committed where the ledger has its ticket, a dead letter where another has it, else as `endWithout` says.
 * While the ledger is unreachable, every delivery ends as `outage`; after the signal they are left open.
 */
export async function endByTicket(
  deliveries: readonly Delivery[],
  context: CommitContext,
  endWithout: (delivery: Delivery) => void,
): Promise<void> {
  if (deliveries.length === 0 || context.signal.aborted) return;
  const breaker = context.breakerOf(LEDGER);
  if (breaker.openUntilMs > 0) {
    for (const delivery of deliveries) delivery.end('outage', 'ledger unavailable');
    return;
  }
  try {
    const tickets = await context.ledger().ticketsOf(deliveries.map((delivery) => delivery.payload));
    for (const [index, delivery] of deliveries.entries()) {
      const ticket = tickets[index];
      if (ticket === 'already') delivery.end('committed');
      else if (ticket === 'conflict') delivery.end('dead_letter', 'ticket_conflict');
      else endWithout(delivery);
    }
  } catch (error) {
    // Whatever it is, it is not the messages': they were only asked about.
    breaker.outage();
    context.log.warn('the ledger is unavailable', { messages: deliveries.length, cause: error });
    for (const delivery of deliveries) delivery.end('outage', 'ledger unavailable');
  }
}

/**
 * Ends messages that are not tried again: committed where the ledger has its ticket, else as a dead letter. While the ledger
 * cannot be asked, none becomes one. A commit hook cannot be asked at all: its pools' messages are dead letters, whatever it
 * did with them.
 */
export async function endSpent(deliveries: readonly Delivery[], context: CommitContext): Promise<void> {
  const inLedger: Delivery[] = [];
  for (const delivery of deliveries) {
    if (delivery.config.commit_webhook_url === null) inLedger.push(delivery);
    else delivery.end('dead_letter', delivery.lastError);
  }
  await endByTicket(inLedger, context, (delivery) => delivery.end('dead_letter', delivery.lastError));
}
