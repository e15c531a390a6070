import { setTimeout as pause } from 'node:timers/promises';
import { addPool, claimMany, crowd, type Neighbour } from './neighbour.ts';

const CLAIMS = 10;
const EVERY_MS = 200;
const SLOTS = 50_000;

export const unreachableCommitFunction: Neighbour = {
  name: 'unreachable_commit_function',
  finding: 'N6',
  about: "a pool's own commit function that raises 08001, as postgres_fdw does, with 50 claims a second",
  healthy: 'tickets',
  async prepare(place) {
    await place.db2.run(`
      create function public.bench_unreachable(p_payload jsonb) returns void language plpgsql as $$
      begin
        raise exception 'could not connect to the other server' using errcode = '08001';
      end $$`);
    await addPool(place, 'hostile', SLOTS);
    await place.db1.run(`
      update public.engine_config set commit_rpc_name = 'bench_unreachable' where pool_id = 'hostile'`);
  },
  start: async (place, times) =>
    crowd(1, async () => {
      await claimMany(place, 'hostile', CLAIMS * times);
      await pause(EVERY_MS);
    }),
};
