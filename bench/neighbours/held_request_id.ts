import { randomUUID } from 'node:crypto';
import { addPool, claim, crowd, holding, type Neighbour } from './neighbour.ts';

const CLIENTS = 4;

export const heldRequestId: Neighbour = {
  name: 'held_request_id',
  finding: 'N3',
  about: `a request id that an open transaction has claimed with, asked for by ${CLIENTS} buyers`,
  healthy: 'claims',
  prepare: (place) => addPool(place, 'hostile', 1_000),
  async start(place, times) {
    const client = await place.connect('db1');
    const id = randomUUID();
    // A stranger, as the buyers are: a proven user of the same name would be another user.
    await client.query('begin; set local role anon');
    await client.query('select public.claim_resource_and_queue($1, $2, $3)', ['hostile', `user ${id}`, id]);
    return holding(
      client,
      crowd(CLIENTS * times, (signal) => claim(place, 'hostile', signal, id)),
    );
  },
};
