// Both databases as the bridge sees them, on top of one thing that every runtime has: a way to call a SQL function by
// named arguments. Node does it over a connection, the Edge Function over PostgREST.

import type { CallFunction } from '../call_function.ts';
import type { Finish, Intake, LaneOfPool, Ledger, PoolConfig, TakenMessage } from './ports.ts';

export function createIntake(call: CallFunction): Intake {
  return {
    lanes: () => call<LaneOfPool>('bridge_lanes', {}),
    take: (wants, leaseSec) =>
      call<TakenMessage>('bridge_take', {
        p_lanes: wants.map(({ lane }) => lane),
        p_wanted: wants.map(({ wanted }) => wanted),
        p_lease_sec: leaseSec,
      }),
    takeSuspect: (lanes, leaseSec) =>
      call<TakenMessage>('bridge_take_suspect', { p_lanes: lanes, p_lease_sec: leaseSec }),
    config: (poolIds) => call<PoolConfig>('bridge_config', { p_pool_ids: poolIds }),
    async firstClaims(claimIds) {
      const rows = await call<{ claim_id: string; is_first: boolean }>('bridge_first_claims', {
        p_claim_ids: claimIds,
      });
      return new Map(rows.map((row) => [row.claim_id, row.is_first]));
    },
    async extend(messages, leaseSec) {
      const rows = await call<{ bridge_extend: number }>('bridge_extend', {
        p_msg_ids: messages.map((message) => message.msg_id),
        p_read_cts: messages.map((message) => message.read_ct),
        p_lease_sec: leaseSec,
      });
      return rows.map((row) => row.bridge_extend);
    },
    async finish(finishes) {
      const rows = await call<{ msg_id: number; outcome: string }>('bridge_finish', columns(finishes));
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

type Outcome = 'committed' | 'already' | 'conflict' | 'voided';
const OUTCOMES: ReadonlySet<unknown> = new Set<Outcome>(['committed', 'already', 'conflict', 'voided']);

/** `callOwn` serves the pools' own functions where they have connections of their own, so that a slow one holds up no set. */
export function createLedger(call: CallFunction, callOwn: CallFunction = call): Ledger {
  return {
    async finalizeBatch(payloads) {
      const rows = await call<{ ordinal: number; outcome: Outcome }>('finalize_batch', {
        p_payloads: payloads,
      });
      const outcomes = new Array<Outcome>(payloads.length);
      for (const row of rows) outcomes[row.ordinal - 1] = row.outcome;
      // Only a known outcome may count as a commit. One payload may cause an unknown one, so it is not an outage (commit.ts).
      const odd = outcomes.findIndex((outcome) => !OUTCOMES.has(outcome));
      if (odd >= 0 || outcomes.length !== payloads.length || rows.length !== payloads.length)
        throw new TypeError(
          `${payloads.length} payloads gave ${rows.length} rows, ${outcomes[odd]} among them`,
        );
      return outcomes;
    },
    async ticketsOf(payloads) {
      const rows = await call<{ ordinal: number; outcome: 'already' | 'conflict' }>('tickets_of', {
        p_payloads: payloads,
      });
      const tickets = new Array<'already' | 'conflict' | undefined>(payloads.length).fill(undefined);
      for (const row of rows) tickets[row.ordinal - 1] = row.outcome;
      return tickets;
    },
    async call(functionName, payload) {
      await callOwn(functionName, { p_payload: payload });
    },
  };
}
