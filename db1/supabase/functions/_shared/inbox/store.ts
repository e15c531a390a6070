// The inbox of one cell: which function of DB1 each question is.

import type { CallFunction } from '../call_function.ts';
import { storable } from '../text.ts';
import type { InboxMessage } from './message.ts';

export type DoorKind = 'endpoint' | 'site';

/** A row of public.copied_door. */
export interface CopiedDoor<Door> {
  readonly door: Door | null;
  /** When DB2 was read; null where nothing was ever copied. */
  readonly read_at: string | null;
}

/** A row of public.copied_secret. */
export interface CopiedSecret {
  readonly is_allowed: boolean;
  /** Whether DB2's Vault had a value when DB2 was read. */
  readonly in_vault: boolean;
  /** Of the cell's own Vault. */
  readonly value: string | null;
  readonly read_at: string | null;
}

/** What the doors need of a cell. */
export interface InboxCell {
  readonly name: string;
  /** All of them committed, or none. */
  accept(messages: readonly InboxMessage[]): Promise<void>;
  copiedDoor<Door>(kind: DoorKind, name: string): Promise<CopiedDoor<Door>>;
  copiedSecret(name: string): Promise<CopiedSecret>;
}

/** A row of public.inbox_take. */
export interface TakenMessage {
  readonly msg_id: number;
  readonly read_ct: number;
  /** Tries that DB2 refused. */
  readonly attempts: number;
  readonly takeovers: number;
  readonly message: InboxMessage;
}

export type Verdict = 'recorded' | 'failed' | 'outage' | 'handed_back' | 'dead_letter';

export interface Finish {
  readonly taken: TakenMessage;
  readonly verdict: Verdict;
  readonly reason: string | null;
}

/** What the carrier needs of a cell. */
export interface InboxQueue {
  isEmpty(): Promise<boolean>;
  take(wanted: number, leaseSec: number): Promise<TakenMessage[]>;
  takeSuspect(leaseSec: number): Promise<TakenMessage[]>;
  extend(messages: readonly TakenMessage[], leaseSec: number): Promise<unknown>;
  /** What became of each, in any order: its verdict, dead_letter after the last attempt, or lost_lease. */
  finish(ends: readonly Finish[]): Promise<{ msg_id: number; outcome: string }[]>;
}

/** `call` takes names of functions in schema public of DB1. */
export function createInboxCell(name: string, call: CallFunction): InboxCell {
  const one = async <Row>(functionName: string, args: Record<string, unknown>): Promise<Row> => {
    const [row] = await call<Row>(functionName, args);
    if (row === undefined) throw new Error(`${functionName} gave no row`);
    return row;
  };
  return {
    name,
    async accept(messages) {
      await call('inbox_accept', { p_messages: messages });
    },
    copiedDoor: (kind, door) => one('copied_door', { p_kind: kind, p_name: door }),
    copiedSecret: (secret) => one('copied_secret', { p_name: secret }),
  };
}

/** As createInboxCell. */
export function createInboxQueue(call: CallFunction): InboxQueue {
  const leases = (messages: readonly TakenMessage[]) => ({
    p_msg_ids: messages.map(({ msg_id }) => msg_id),
    p_read_cts: messages.map(({ read_ct }) => read_ct),
  });
  return {
    isEmpty: async () => (await call('inbox_lanes', {})).length === 0,
    take: (wanted, leaseSec) => call<TakenMessage>('inbox_take', { p_wanted: wanted, p_lease_sec: leaseSec }),
    takeSuspect: (leaseSec) => call<TakenMessage>('inbox_take_suspect', { p_lease_sec: leaseSec }),
    extend: (messages, leaseSec) => call('inbox_extend', { ...leases(messages), p_lease_sec: leaseSec }),
    finish: (ends) =>
      call('inbox_finish', {
        ...leases(ends.map(({ taken }) => taken)),
        p_verdicts: ends.map(({ verdict }) => verdict),
        p_reasons: ends.map(({ reason }) => (reason === null ? null : storable(reason))),
      }),
  };
}
