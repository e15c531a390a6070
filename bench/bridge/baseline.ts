// The plain worker as its requirements describe it: read a batch, then for each message commit to the ledger and set the
// slot CONSUMED, one after the other; then delete the batch.

import pg from 'pg';
import type { Payload } from '#core/bridge/ports.ts';
import { statementFor } from '../../src/db/statement.ts';
import { type Drained, runLoops, Stopwatch } from '../stopwatch.ts';
import type { World } from '../world.ts';
import type { Drain, Way } from './way.ts';

type Message = { msg_id: string; message: Payload };

const VISIBILITY_SEC = 45;
/** Its second round trip a message. */
const CONSUME = {
  name: 'consume',
  text: `update public.inventory_slots set status = 'CONSUMED' where id = $1 and status = 'RESERVED'`,
};

export const baseline: Way = {
  schema: 'pgmq',
  endsClaims: true,
  settings: () => 'one loop, one message after the other',
  run: drainOneByOne,
};

async function drainOneByOne(world: World, { clients, batch }: Drain): Promise<Drained> {
  const db1 = new pg.Client({ connectionString: world.db1Url });
  const db2 = new pg.Client({ connectionString: world.db2Url });
  await Promise.all([db1.connect(), db2.connect()]);
  const watch = new Stopwatch();
  const carryBatch = async (): Promise<number> => {
    const read = { p_visibility_timeout: VISIBILITY_SEC, p_batch_size: batch };
    const messages = await call<Message>(db1, 'public.intake_queue_read', read);
    if (messages.length === 0) return 0;
    for (const { message } of messages) {
      await call(db2, 'public.finalize_transaction', { p_payload: message });
      await db1.query({ ...CONSUME, values: [message.resource_id] });
    }
    await call(db1, 'public.intake_queue_delete', { p_msg_ids: messages.map(({ msg_id }) => msg_id) });
    return messages.length;
  };
  try {
    await runLoops(clients, watch, () => carryBatch);
  } finally {
    await Promise.all([db1.end(), db2.end()]);
  }
  return watch.read();
}

async function call<Row>(client: pg.Client, functionName: string, args: Record<string, unknown>) {
  const statement = statementFor(functionName, Object.keys(args));
  const { rows } = await client.query({ ...statement, values: Object.values(args) });
  return rows as Row[];
}
