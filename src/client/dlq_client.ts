// The dead letters of a running server, over its admin API.

import type { DeadLetter, DlqResult } from '#core/dlq.ts';
import type { Connection } from '../commands/operator.ts';
import { AdminClient, ApiError } from './admin_client.ts';

export type DlqQuery = Partial<Record<'pool_id' | 'reason' | 'older_than_sec' | 'after' | 'limit', string>>;

export interface DlqActionRequest {
  msg_ids: number[];
  reason?: string;
  dry_run?: boolean;
}

export interface DlqClient {
  list(query: DlqQuery): Promise<DeadLetter[]>;
  /** Undefined where there is no such letter. */
  show(msgId: number): Promise<DeadLetter | undefined>;
  act(action: 'replay' | 'discard', request: DlqActionRequest): Promise<DlqResult[]>;
}

export function createDlqClient(connection: Connection): DlqClient {
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
    act: async (action, request) =>
      (await api.post<{ results: DlqResult[] }>(`/admin/dlq/${action}`, request)).results,
  };
}
