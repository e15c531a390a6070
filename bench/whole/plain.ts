// The plain design the whole way, as its requirements describe it, with what tuning brought it: its server and its worker loop as
// processes of their own.

import { fileURLToPath } from 'node:url';
import { postmasterOf } from '../cpu.ts';
import { Forked } from '../forked.ts';
import { openWorld, sql } from '../world.ts';
import { bloatOf, LOOK_BY_INDEX, type OpenWay, POOL, type Way } from './way.ts';

const SERVER = fileURLToPath(new URL('./plain_server.ts', import.meta.url));
const WORKER = fileURLToPath(new URL('./plain_worker.ts', import.meta.url));
const TABLES = ['plain.inventory_slots', 'pgmq.q_plain_queue'];

const TUNED = [
  'the HTTP server of sluice with the same checks; ten connections to DB1, prepared statements',
  'enable_seqscan off for claims: the planner would scan the slots from the start once they are analysed',
  'batches of 100 messages, ten of them at once over ten connections to each database (the requirement’s loop has one at a time)',
  'one delete for a batch; an empty queue is looked at again after 20 ms, not once a minute by cron',
];

export const plain: Way = { name: 'plain', tuned: TUNED, open };

async function open(settings: Record<string, string> = {}): Promise<OpenWay> {
  const world = await openWorld(settings, ({ db1 }) => db1.run(sql('baseline.sql')));
  const { db1, db2 } = world;
  await db1.run(LOOK_BY_INDEX);
  const server = new Forked(SERVER);
  const worker = new Forked(WORKER);
  const urls = { db1Url: world.db1Url, db2Url: world.db2Url };
  const [port] = await Promise.all([server.ask<number>(urls), worker.ask(urls)]);
  return {
    port,
    parts: {
      server: server.pid,
      worker: worker.pid,
      db1: await postmasterOf(db1),
      db2: await postmasterOf(db2),
    },
    world,
    addSlots: (count) =>
      db1.ask(
        'insert into plain.inventory_slots (pool_id) select $1 from pg_catalog.generate_series(1, $2::int)',
        [POOL, count],
      ),
    isSoldOut: () =>
      db1.ask(
        `select not exists (select from plain.inventory_slots where pool_id = $1 and status = 'AVAILABLE')`,
        [POOL],
      ),
    isDrained: () => db1.ask('select not exists (select from pgmq.q_plain_queue)'),
    bloat: () => bloatOf(world, TABLES),
    calls: { claim: 'plain.claim_resource_and_queue', take: 'pgmq.read' },
    async stop() {
      server.tell('end');
      worker.tell('end');
      await Promise.all([server.end(), worker.end()]);
      await world.stop();
    },
  };
}
