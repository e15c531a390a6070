import type { Finish, Intake, PoolConfig, TakenMessage } from '#core/bridge/ports.ts';
import type { Database } from '../db/database.ts';

/** DB1 as the bridge sees it, over a plain connection. */
export function createIntake(db1: Database): Intake {
  return {
    take: (batchSize, leaseSec, paused) =>
      db1.call<TakenMessage>('public.bridge_take', {
        p_batch_size: batchSize,
        p_lease_sec: leaseSec,
        p_paused: paused,
      }),
    config: (poolIds) => db1.call<PoolConfig>('public.bridge_config', { p_pool_ids: poolIds }),
    async allow(poolId, wanted) {
      const rows = await db1.call<{ bridge_allow: number }>('public.bridge_allow', {
        p_pool_id: poolId,
        p_wanted: wanted,
      });
      return rows[0]?.bridge_allow ?? 0;
    },
    async extend(messages, leaseSec) {
      const rows = await db1.call<{ bridge_extend: number }>('public.bridge_extend', {
        p_msg_ids: messages.map((message) => message.msg_id),
        p_read_cts: messages.map((message) => message.read_ct),
        p_lease_sec: leaseSec,
      });
      return rows.map((row) => row.bridge_extend);
    },
    async finish(finishes) {
      const rows = await db1.call<{ msg_id: number; outcome: string }>(
        'public.bridge_finish',
        columns(finishes),
      );
      return new Map(rows.map((row) => [row.msg_id, row.outcome]));
    },
  };
}

function columns(finishes: readonly Finish[]): Record<string, unknown> {
  return {
    p_msg_ids: finishes.map((finish) => finish.msg_id),
    p_read_cts: finishes.map((finish) => finish.read_ct),
    p_verdicts: finishes.map((finish) => finish.verdict),
    p_reasons: finishes.map((finish) => finish.reason),
    p_delays_ms: finishes.map((finish) => finish.delay_ms),
  };
}
