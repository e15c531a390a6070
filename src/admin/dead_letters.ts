// The dead letters of a running server, over its admin API.

import type { ClaimRecord } from '#core/claim.ts';
import type { DeadLetter, DeadLetterResult } from '#core/dead_letters.ts';
import type { Connection } from '../commands/operator.ts';
import { AdminClient, ApiError } from './client.ts';

export type DeadLetterQuery = Partial<
  Record<'pool_id' | 'reason' | 'older_than_sec' | 'after' | 'limit', string>
>;

export interface DeadLetterActionRequest {
  msg_ids: number[];
  reason?: string;
  dry_run?: boolean;
}

export interface DeadLetterClient {
  list(query: DeadLetterQuery): Promise<DeadLetter[]>;
  /** Undefined if the letter does not exist. */
  show(msgId: number): Promise<DeadLetter | undefined>;
  act(action: 'replay' | 'discard', request: DeadLetterActionRequest): Promise<DeadLetterResult[]>;
  /** The state of a claim, or `ending` while it is going to end. */
  stateOf(claimId: string): Promise<string>;
}

export function createDeadLetterClient(connection: Connection): DeadLetterClient {
  const api = new AdminClient(connection);
  return {
    list: async (query) => (await api.get<{ messages: DeadLetter[] }>('/admin/dlq', query)).messages,
    async show(msgId) {
      try {
        return await api.get<DeadLetter>(`/admin/dlq/${msgId}`);
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      }
    },
    async stateOf(claimId) {
      const { claim } = await api.get<{ claim: ClaimRecord }>(`/admin/claims/${claimId}`);
      return claim.ending ? 'ending' : claim.state;
    },
    act: async (action, request) =>
      (await api.post<{ results: DeadLetterResult[] }>(`/admin/dlq/${action}`, request)).results,
  };
}
