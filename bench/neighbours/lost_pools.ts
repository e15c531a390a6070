import { setTimeout as pause } from 'node:timers/promises';
import { addPool, claim, crowd, type Neighbour, together } from './neighbour.ts';

const POOLS = Array.from({ length: 8 }, (_, at) => `hostile_${at}`);
const CLIENTS = 8;
const LOSE_EVERY_MS = 100;

export const lostPools: Neighbour = {
  name: 'lost_pools',
  finding: 'N5',
  about: `${POOLS.length} pools that lose their caches ten times a second while ${CLIENTS} buyers claim and the bridge commits`,
  healthy: 'claims',
  async prepare(place) {
    for (const pool of POOLS) await addPool(place, pool, 5_000);
  },
  async start(place, times) {
    const losing = await place.connect('db1');
    let next = 0;
    return together(
      crowd(CLIENTS * times, (signal) => claim(place, POOLS[next++ % POOLS.length] ?? '', signal)),
      crowd(1, async () => {
        await losing.query('delete from intake.pool_marks where pool_id = any ($1)', [POOLS]);
        await pause(LOSE_EVERY_MS);
      }),
    );
  },
};
