// The product as it is deployed: `sluice serve` and `sluice work`, of this checkout or of another.

import { postmasterOf } from '../cpu.ts';
import { addPool } from '../neighbours/neighbour.ts';
import { openProduct, type Version } from '../neighbours/place.ts';
import { bloatOf, LOOK_BY_INDEX, type OpenWay, OURS, POOL, type Way } from './way.ts';

const TABLES = ['public.inventory_slots', 'public.claims', 'pgmq.q_intake_queue'];

const TUNED = ['one `sluice serve` and one `sluice work` with their defaults'];

export function oursOf(version: Version): Way {
  return {
    name: version.name === 'this' ? OURS : version.name,
    tuned: TUNED,
    open: (settings) => open(version, settings),
  };
}

async function open(version: Version, settings: Record<string, string> = {}): Promise<OpenWay> {
  const product = await openProduct(version, (place) => addPool(place, POOL, 0), { settings });
  const { db1, db2, worker } = product;
  await db1.run(LOOK_BY_INDEX);
  return {
    port: product.port,
    parts: {
      server: product.server.pid,
      worker: worker.pid,
      db1: await postmasterOf(db1),
      db2: await postmasterOf(db2),
    },
    world: product,
    addSlots: (count) =>
      db1.ask(
        'insert into public.inventory_slots (pool_id) select $1 from pg_catalog.generate_series(1, $2::int)',
        [POOL, count],
      ),
    isSoldOut: () =>
      db1.ask(
        `select not exists (select from public.inventory_slots where pool_id = $1 and status = 'AVAILABLE')`,
        [POOL],
      ),
    isDrained: () => db1.ask('select not exists (select from pgmq.q_intake_queue)'),
    bloat: () => bloatOf(product, TABLES),
    calls: { claim: 'public.claim_batch', take: 'public.bridge_take' },
    worker: { stall: () => worker.stall(), goOn: () => worker.goOn() },
    stop: product.end,
  };
}
