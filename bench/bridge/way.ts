// What every way of draining the queue has to offer, and what they share.

import type { Payload } from '#core/bridge/ports.ts';
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

/** Takes the messages from the intake queue, for another. */
export async function takeMessages({ db1 }: World): Promise<Payload[]> {
  const rows = await db1.rows<{ payloads: Payload }>('bench.payloads');
  await db1.run('truncate pgmq.q_intake_queue');
  return rows.map((row) => row.payloads);
}
