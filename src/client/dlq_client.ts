// The dead letters of a running server, over its admin API.

import type { DeadLetter, DlqResult } from '#core/dlq.ts';

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

export interface DlqClientOptions {
  url: string;
  adminKey: string;
  /** Who the audit log names. */
  operator?: string;
}

/** The server said no, or nothing: what a person should read. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly hint: string;

  constructor(status: number, message: string, hint: string, cause?: unknown) {
    super(message, { cause });
    this.status = status;
    this.hint = hint;
  }
}

const TIMEOUT_MS = 60_000;

export function createDlqClient({ url, adminKey, operator }: DlqClientOptions): DlqClient {
  const base = `${url.replace(/\/+$/, '')}/admin/dlq`;
  const headers: Record<string, string> = {
    authorization: `Bearer ${adminKey}`,
    ...(operator && { 'x-operator': operator }),
  };

  async function ask<Answer>(path: string, body?: unknown): Promise<Answer> {
    let response: Response;
    try {
      response = await fetch(`${base}${path}`, {
        signal: AbortSignal.timeout(TIMEOUT_MS),
        ...(body === undefined
          ? { headers }
          : {
              method: 'POST',
              headers: { ...headers, 'content-type': 'application/json' },
              body: JSON.stringify(body),
            }),
      });
    } catch (error) {
      throw new ApiError(0, `no server answers at ${url}`, 'is it running? SLUICE_URL says where', error);
    }
    const text = await response.text();
    if (response.ok) return JSON.parse(text) as Answer;
    throw refusalOf(response.status, text);
  }

  return {
    list: async (query) =>
      (await ask<{ messages: DeadLetter[] }>(`?${new URLSearchParams(query as Record<string, string>)}`))
        .messages,
    async show(msgId) {
      try {
        return await ask<DeadLetter>(`/${msgId}`);
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      }
    },
    act: async (action, request) => (await ask<{ results: DlqResult[] }>(`/${action}`, request)).results,
  };
}

function refusalOf(status: number, text: string): ApiError {
  try {
    const { message, hint } = JSON.parse(text).error;
    return new ApiError(status, String(message), String(hint));
  } catch (error) {
    // Not our shape: somebody else answers there.
    return new ApiError(status, `the server answered ${status}`, 'is SLUICE_URL the Sluice server?', error);
  }
}
