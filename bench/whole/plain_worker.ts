// The plain worker loop: read a batch, then for each message commit to the ledger and set the slot CONSUMED; then delete the batch.

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { serve } from './served.ts';

const VISIBILITY_SEC = 45;
const BATCH = 100;
/** Messages at once. The requirement's loop has one; ten is what tuning brought (plain.ts). */
const AT_ONCE = 10;
/** Between two looks at an empty queue. */
const IDLE_MS = 20;

type Message = { msg_id: string; message: { resource_id: string } };

const READ = {
  name: 'read',
  text: 'select msg_id, message from pgmq.read($1, $2, $3)',
  values: ['plain_queue', VISIBILITY_SEC, BATCH],
};
const FINALIZE = { name: 'finalize', text: 'select public.finalize_transaction($1)' };
const CONSUME = {
  name: 'consume',
  text: `update plain.inventory_slots set status = 'CONSUMED' where id = $1 and status = 'RESERVED'`,
};
const DELETE = { name: 'delete', text: `select pgmq.delete('plain_queue', $1::bigint[])` };

serve(async ({ db1Url, db2Url }: { db1Url: string; db2Url: string }) => {
  const db1 = new pg.Pool({ connectionString: db1Url, max: AT_ONCE });
  const db2 = new pg.Pool({ connectionString: db2Url, max: AT_ONCE });
  let isEnding = false;
  const carry = async (messages: Message[]): Promise<void> => {
    for (let next = messages.pop(); next !== undefined; next = messages.pop()) {
      await db2.query({ ...FINALIZE, values: [next.message] });
      await db1.query({ ...CONSUME, values: [next.message.resource_id] });
    }
  };
  const loop = async (): Promise<void> => {
    while (!isEnding) {
      const { rows } = await db1.query<Message>(READ);
      if (rows.length === 0) {
        await pause(IDLE_MS);
        continue;
      }
      const ids = rows.map(({ msg_id }) => msg_id);
      await Promise.all(Array.from({ length: AT_ONCE }, () => carry(rows)));
      await db1.query({ ...DELETE, values: [ids] });
    }
  };
  const looping = loop();
  return {
    answer: true,
    async end() {
      isEnding = true;
      await looping;
      await Promise.all([db1.end(), db2.end()]);
    },
  };
});
