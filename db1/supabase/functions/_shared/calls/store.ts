// Call events in DB2, on top of what every runtime has: a way to call a function of schema calls by named arguments.

import type { CallFunction } from '../call_function.ts';

/** A row of public.call_sites. */
export interface CallSite {
  readonly site_id: string;
  /** Newest first. */
  readonly secret_names: readonly string[];
  readonly require_signature: boolean;
  readonly kinds: readonly string[] | null;
  readonly is_active: boolean;
  /** What a call is answered while DB2 is away: 503, or 2xx after it was committed to the inbox. */
  readonly on_outage: 'refuse' | 'accept';
  readonly created_at: string;
}

export interface Call {
  readonly siteId: string;
  readonly eventId: string | null;
  readonly kind: string;
  /** As JSON text. */
  readonly payload: string;
  readonly occurredAt: string;
  /** Null where the request was not signed. */
  readonly signatureHash: string | null;
  /** Of its row, where nothing else recognises its second record; the database makes one where left out. */
  readonly id?: string;
  /** Set where it waited in the inbox. */
  readonly receivedAt?: string;
}

export interface RecordedCall {
  readonly id: string;
  readonly outcome: 'recorded' | 'duplicate' | 'event_conflict';
}

export interface CallStore {
  findSite(siteId: string): Promise<CallSite | undefined>;
  /** One statement for all; the answers in the order of the calls, each after the commit. */
  recordCalls(calls: readonly Call[]): Promise<RecordedCall[]>;
}

export function createCallStore(call: CallFunction): CallStore {
  return {
    findSite: async (siteId) => (await call<CallSite>('find_site', { p_site_id: siteId }))[0],
    async recordCalls(calls) {
      const rows = await call<RecordedCall & { ordinal: number }>('record_calls', {
        p_site_ids: calls.map((one) => one.siteId),
        p_event_ids: calls.map((one) => one.eventId),
        p_kinds: calls.map((one) => one.kind),
        p_payloads: calls.map((one) => one.payload),
        p_occurred_at: calls.map((one) => one.occurredAt),
        p_signature_hashes: calls.map((one) => one.signatureHash),
        ...(calls.some(({ id }) => id !== undefined) && { p_ids: calls.map(({ id }) => id ?? null) }),
        ...(calls.some(({ receivedAt }) => receivedAt !== undefined) && {
          p_received_at: calls.map(({ receivedAt }) => receivedAt ?? null),
        }),
      });
      if (rows.length !== calls.length) throw new Error(`${calls.length} calls gave ${rows.length} rows`);
      const answers = new Array<RecordedCall>(rows.length);
      for (const { ordinal, id, outcome } of rows) answers[ordinal - 1] = { id, outcome };
      return answers;
    },
  };
}
