// A running server's admin API, for the command line.

import type { Connection } from '../commands/operator.ts';
import { CELLS_AWAY_HEADER } from '../fleet/addresses.ts';

/** The server said no, or nothing: what a person should read. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** 0 if no server answered. */
  readonly status: number;
  readonly code: string;
  readonly hint: string;

  constructor(status: number, code: string, message: string, hint: string, cause?: unknown) {
    super(message, { cause });
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

export interface Page<Item> {
  readonly items: Item[];
  readonly next: string | null;
}

/** Longer than the longest statement of the server: a million slots in one go. */
const TIMEOUT_MS = 60_000;
const KEY_HINT =
  'set SLUICE_OPERATOR_KEY to your key, or SLUICE_ADMIN_KEY to the one that this server was started with, and SLUICE_URL to its address';

export class AdminClient {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get<Answer>(path: string, query: Record<string, string> = {}): Promise<Answer> {
    const text = new URLSearchParams(query).toString();
    return this.#json(text === '' ? path : `${path}?${text}`, {});
  }

  async text(path: string): Promise<string> {
    const response = await this.#send(path, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await this.#textOf(response);
    if (!response.ok) throw refusalOf(response.status, text);
    return text;
  }

  post<Answer>(path: string, body: unknown): Promise<Answer> {
    const headers = { 'content-type': 'application/json' };
    return this.#json(path, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  /** All items of a list, page by page. */
  async all<Item>(path: string, query: Record<string, string> = {}): Promise<Item[]> {
    const items: Item[] = [];
    for (let after: string | null = ''; after !== null; ) {
      const page: Page<Item> = await this.get(path, { ...query, ...(after !== '' && { after }) });
      items.push(...page.items);
      after = page.next;
    }
    return items;
  }

  async stream(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#send(path, { signal });
    if (response.ok && response.body !== null) return response.body;
    throw refusalOf(response.status, await this.#textOf(response));
  }

  async #json<Answer>(path: string, init: RequestInit): Promise<Answer> {
    const response = await this.#send(path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await this.#textOf(response);
    if (!response.ok) throw refusalOf(response.status, text);
    try {
      return (text === '' ? undefined : JSON.parse(text)) as Answer;
    } catch {
      throw refusalOf(response.status, text);
    }
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    const { url, key } = this.#connection;
    const headers = { ...init.headers, authorization: `Bearer ${key}` };
    try {
      return warned(await fetch(`${url.replace(/\/+$/, '')}${path}`, { ...init, headers }));
    } catch (error) {
      const hint = 'is it running? SLUICE_URL says where';
      throw new ApiError(0, 'no_answer', `no server answers at ${url}`, hint, error);
    }
  }

  /** Half an answer says nothing. */
  async #textOf(response: Response): Promise<string> {
    try {
      return await response.text();
    } catch (error) {
      const message = `the answer of ${this.#connection.url} was cut off`;
      throw new ApiError(0, 'no_answer', message, 'try again', error);
    }
  }
}

/** An answer without some cells is told to the person: their part is missing. */
function warned(response: Response): Response {
  const away = response.headers.get(CELLS_AWAY_HEADER);
  if (away !== null) console.error(`warning: cell ${away} does not answer; what it has is missing here`);
  return response;
}

function refusalOf(status: number, text: string): ApiError {
  try {
    const { code, message, hint } = JSON.parse(text).error;
    // The server's message is for programs that send headers; a user of this command has set a variable.
    if (code === 'auth_required') return new ApiError(status, code, 'the server refused the key', KEY_HINT);
    return new ApiError(status, String(code), String(message), String(hint));
  } catch (error) {
    // Not an answer of Sluice: another server answers there.
    const hint = 'is SLUICE_URL the Sluice server?';
    return new ApiError(status, 'not_sluice', `the server answered ${status}`, hint, error);
  }
}
