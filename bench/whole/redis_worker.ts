// Carries the stream to the ledger in sets: read under the group, finalize_batch, then acknowledge and delete together.

import pg from 'pg';
import { createClient } from 'redis';
import { GROUP, KEYS } from './redis_keys.ts';
import { serve } from './served.ts';

const BATCH = 1_000;
const BLOCK_MS = 100;
/** Loops at once: while one waits for the ledger the other reads. */
const LOOPS = 2;

const FINALIZE = { name: 'finalize', text: 'select outcome from public.finalize_batch($1)' };

type Entry = { id: string; message: Record<string, string> };

serve(async ({ url, db2Url }: { url: string; db2Url: string }) => {
  const db2 = new pg.Pool({ connectionString: db2Url, max: LOOPS });
  const setUp = createClient({ url });
  await setUp.connect();
  await setUp.xGroupCreate(KEYS.stream, GROUP, '0', { MKSTREAM: true });
  setUp.destroy();
  let isEnding = false;

  const loop = async (consumer: string): Promise<void> => {
    const client = createClient({ url });
    await client.connect();
    while (!isEnding) {
      const read = await client.xReadGroup(
        GROUP,
        consumer,
        { key: KEYS.stream, id: '>' },
        { COUNT: BATCH, BLOCK: BLOCK_MS },
      );
      const entries = ((read as { messages: Entry[] }[] | null) ?? []).flatMap(({ messages }) => messages);
      if (entries.length === 0) continue;
      const { rows } = await db2.query<{ outcome: string }>({
        ...FINALIZE,
        values: [JSON.stringify(entries.map(({ message }) => message))],
      });
      const conflict = rows.find(({ outcome }) => outcome === 'conflict');
      if (conflict !== undefined) throw new Error('the ledger has another ticket for a slot');
      const ids = entries.map(({ id }) => id);
      await client.multi().xAck(KEYS.stream, GROUP, ids).xDel(KEYS.stream, ids).exec();
    }
    client.destroy();
  };
  const looping = Array.from({ length: LOOPS }, (_, at) => loop(`worker-${at}`));
  return {
    answer: true,
    async end() {
      isEnding = true;
      await Promise.all(looping);
      await db2.end();
    },
  };
});
