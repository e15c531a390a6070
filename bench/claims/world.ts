// Both designs side by side in one cluster.

import { findTools, type Tools } from '../tools.ts';
import { openWorld, settle, sql, type World } from '../world.ts';

export type Design = 'plain' | 'ours';

export type ClaimsWorld = World & {
  tools: Tools;
  /** As the role whose planner shuns sequential scans. */
  indexedUrl: string;
  /** A fresh pool, with the statistics that a live system would have of it. */
  fill(design: Design, slots: number): Promise<void>;
};

const TABLES: Record<Design, string> = {
  plain: 'plain.inventory_slots, pgmq.q_plain_queue, plain.floor',
  ours: `public.inventory_slots, public.claims, public.slot_manifest, public.engine_config,
    intake.pool_totals, intake.pool_marks, pgmq.q_intake_queue`,
};

export async function createWorld(): Promise<ClaimsWorld> {
  const tools = await findTools();
  const world = await openWorld({}, async ({ db1 }) => {
    for (const file of ['baseline.sql', 'claims.sql']) await db1.run(sql(file));
  });
  return {
    ...world,
    tools,
    indexedUrl: world.db1Url.replace('//postgres:', '//plain_indexed:'),
    async fill(design, slots) {
      await world.db1.rows(`bench.fill_${design}`, { p_slots: slots });
      await settle(world.db1, TABLES[design]);
    },
  };
}
