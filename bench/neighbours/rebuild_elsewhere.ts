import { addPool, claim, crowd, holding, type Neighbour } from './neighbour.ts';

const CLIENTS = 8;

export const rebuildElsewhere: Neighbour = {
  name: 'rebuild_elsewhere',
  finding: 'N4',
  about: `a pool that lost its cache while its rebuild lock is held, with ${CLIENTS} buyers`,
  healthy: 'claims',
  prepare: (place) => addPool(place, 'hostile', 1_000),
  async start(place, times) {
    const client = await place.connect('db1');
    await client.query('begin');
    await client.query(`select pg_advisory_xact_lock(intake.pool_lock_key('hostile'))`);
    await place.db1.run(`delete from intake.pool_marks where pool_id = 'hostile'`);
    return holding(
      client,
      crowd(CLIENTS * times, (signal) => claim(place, 'hostile', signal)),
    );
  },
};
