import { addPool, claim, crowd, holding, type Neighbour } from './neighbour.ts';

const SLOTS = 20;
const CLIENTS = 300;

export const lockedSlots: Neighbour = {
  name: 'locked_slots',
  finding: 'N12',
  about: `a pool whose ${SLOTS} slots an open transaction has locked, with ${CLIENTS} buyers who come again and again`,
  healthy: 'claims',
  prepare: (place) => addPool(place, 'hostile', SLOTS),
  async start(place, times) {
    const client = await place.connect('db1');
    await client.query('begin');
    await client.query(`select from public.inventory_slots where pool_id = 'hostile' for update`);
    return holding(
      client,
      crowd(CLIENTS * times, (signal) => claim(place, 'hostile', signal)),
    );
  },
};
