// What every way of draining the queue has to offer, and what they share.

import type { Payload } from '#core/bridge/ports.ts';
import type { Database } from '../../src/db/database.ts';
import type { Drained } from '../stopwatch.ts';
import type { World } from '../world.ts';

export type Drain = {
  /** Loops, or jobs at a time. */
  clients: number;
  batch: number;
  /** The drain ends when the ledger has this many tickets and the queue none of the messages. */
  messages: number;
};

export type Way = {
  /** The schema its queue lives in. */
  schema: string;
  /** True when it also sets claims committed and slots CONSUMED, as the plain loop and our bridge do. */
  endsClaims: boolean;
  /** Stands in the row: how the other systems were set up. */
  settings(drain: Drain): string;
  /** Gives the messages of the intake queue to its own. */
  load?(world: World): Promise<void>;
  /** Connections are made before its clock starts, and have ended when it returns. */
  run(world: World, drain: Drain): Promise<Drained>;
};

/** What a queue that knows nothing of claims has to do on DB1 for the bridge's outcome: one more statement for many. */
export async function endClaims(db1: Database, payloads: readonly Payload[]): Promise<void> {
  await db1.call('bench.end_claims', {
    p_claim_ids: payloads.map(({ claim_id }) => claim_id),
    p_slot_ids: payloads.map(({ resource_id }) => resource_id),
  });
}

/** Takes the messages from the intake queue, for another. */
export async function takeMessages({ db1 }: World): Promise<Payload[]> {
  const rows = await db1.rows<{ payloads: Payload }>('bench.payloads');
  await db1.run('truncate pgmq.q_intake_queue');
  return rows.map((row) => row.payloads);
}
