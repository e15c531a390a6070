// On DB2 graphile-worker's queue stands beside our events.

import { installGraphileWorker } from '../graphile_worker.ts';
import { findTools } from '../tools.ts';
import { openWorld, settle, sql, type World } from '../world.ts';

export type WebhooksWorld = World & {
  wrk: string;
  webhookId: string;
  /** No events and no effects; what `load` then puts there is vacuumed and analysed, and a checkpoint is made. */
  clear(load?: () => Promise<void>): Promise<void>;
};

export const SECRET = 'whsec_bench_of_the_endpoint';

const ENDPOINT = {
  p_name: 'bench',
  p_provider: 'stripe',
  p_secret_names: ['STRIPE_WEBHOOK_SECRET'],
  p_actor: 'bench',
};

export async function createWorld(): Promise<WebhooksWorld> {
  const { wrk } = await findTools();
  let webhookId = '';
  const world = await openWorld({}, async ({ db2, db2Url }) => {
    await installGraphileWorker(db2Url);
    await db2.run(sql('webhooks.sql'));
    webhookId = await db2.value('webhook.add_endpoint', ENDPOINT);
  });
  const { db2 } = world;
  return {
    ...world,
    wrk,
    webhookId,
    async clear(load) {
      await db2.run(
        'truncate public.webhook_events, public.payments, public.credit_ledger, graphile_worker._private_jobs',
      );
      await load?.();
      await settle(db2);
    },
  };
}
