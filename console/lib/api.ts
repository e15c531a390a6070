// Requests to the admin API. A refusal is an ApiError; a lost session also shows the sign-in form.

import type { Operator } from '../../db1/supabase/functions/_shared/roles.ts';
import { createStore } from './store.ts';

export type Session = 'unknown' | 'in' | 'out';
export const session = createStore<Session>('unknown');
/** Whose key this session was exchanged for; undefined until the server says so. */
export const operator = createStore<Operator | undefined>(undefined);

export class ApiError extends Error {
  /** 0 where no answer came. */
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly requestId: string | undefined;

  constructor(status: number, code: string, message: string, hint: string, requestId?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.requestId = requestId;
  }

  /** Something is down that may be up again in a moment. */
  get isOutage(): boolean {
    return this.status === 0 || this.status === 503;
  }
}

/** Also what is a mistake of ours and not the server's refusal. */
export const asApiError = (error: unknown): ApiError =>
  error instanceof ApiError ? error : new ApiError(-1, 'broken', String(error), 'Reload the page.');

export type Query = Readonly<Record<string, string | number | undefined>>;

export function pathWith(path: string, query: Query): string {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') values.set(name, String(value));
  const text = values.toString();
  return text === '' ? path : `${path}?${text}`;
}

export const get = <Answer>(path: string, query: Query = {}): Promise<Answer> =>
  request<Answer>('GET', pathWith(path, query));
export const post = <Answer>(path: string, body: unknown): Promise<Answer> =>
  request<Answer>('POST', path, body);

async function request<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await send(method, path, body);
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as Answer;
  const error = await refusalOf(response);
  if (error.status === 401) session.set('out');
  throw error;
}

async function send(method: string, path: string, body: unknown): Promise<Response> {
  try {
    return await fetch(path, {
      method,
      headers: {
        ...(method !== 'GET' && { 'x-sluice-csrf': '1' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiError(0, 'unreachable', 'The server does not answer.', 'Is it running, and are you online?');
  }
}

async function refusalOf(response: Response): Promise<ApiError> {
  const { status } = response;
  try {
    const { error } = (await response.json()) as {
      error: { code: string; message: string; hint: string; request_id: string };
    };
    return new ApiError(status, error.code, error.message, error.hint, error.request_id);
  } catch {
    return new ApiError(status, 'unknown', `The server answered with status ${status}.`, '');
  }
}

export async function findSession(): Promise<void> {
  try {
    operator.set(await request<Operator>('GET', '/admin/session'));
    session.set('in');
  } catch (error) {
    // While the server is away the pages say so themselves; a session may still be good when it is back.
    if (!(error instanceof ApiError) || error.status !== 401) session.set('in');
  }
}

export async function signIn(key: string): Promise<void> {
  await request('POST', '/admin/session', { key });
  await findSession();
}

export async function signOut(): Promise<void> {
  await request('DELETE', '/admin/session');
  session.set('out');
}
