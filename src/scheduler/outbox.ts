// Sends what net.http_post and its sisters queued, and stores the answers where pg_net would.

import type { Log } from '#core/ports.ts';
import type { Database } from '../db/database.ts';

interface QueuedRequest {
  readonly id: number;
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string> | null;
  readonly body: Buffer | null;
  readonly timeout_milliseconds: number;
}

interface StoredResponse extends Record<string, unknown> {
  p_status_code: number | null;
  p_content_type: string | null;
  p_headers: string | null;
  p_content: string | null;
  p_timed_out: boolean;
  p_error_msg: string | null;
}

const REQUESTS_AT_ONCE = 16;
/** Answers are for looking at; a longer one is cut. */
const MAX_CONTENT_BYTES = 1024 * 1024;

/** Sends until nothing is queued. Takes only as many as it sends at once: a request that is taken and not sent is lost. */
export async function sendQueued(db: Database, log: Log, signal: AbortSignal): Promise<void> {
  let taken = REQUESTS_AT_ONCE;
  while (taken === REQUESTS_AT_ONCE && !signal.aborted) {
    const requests = await db.call<QueuedRequest>('net.take_requests', { p_limit: REQUESTS_AT_ONCE });
    taken = requests.length;
    await Promise.all(
      requests.map(async (request) => {
        const response = await send(request);
        log.debug('queued request', { id: request.id, status: response.p_status_code });
        await db.call('net.store_response', { p_id: request.id, ...response });
      }),
    );
  }
}

async function send(request: QueuedRequest): Promise<StoredResponse> {
  const timeout = AbortSignal.timeout(request.timeout_milliseconds);
  try {
    const response = await fetch(request.url, {
      method: request.method,
      headers: request.headers ?? {},
      ...(request.body !== null && { body: new Uint8Array(request.body) }),
      redirect: 'manual',
      signal: timeout,
    });
    return {
      p_status_code: response.status,
      p_content_type: response.headers.get('content-type'),
      p_headers: JSON.stringify(Object.fromEntries(response.headers)),
      p_content: await readText(response),
      p_timed_out: false,
      p_error_msg: null,
    };
  } catch (error) {
    return {
      p_status_code: null,
      p_content_type: null,
      p_headers: null,
      p_content: null,
      p_timed_out: timeout.aborted,
      p_error_msg: timeout.aborted
        ? `Timeout of ${request.timeout_milliseconds} ms reached`
        : reasonOf(error),
    };
  }
}

/** At most so many bytes, as text that Postgres takes. */
async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MAX_CONTENT_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_CONTENT_BYTES).toString('utf8').replaceAll('\0', '');
}

/** fetch says "fetch failed" and keeps the reason in its cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as { message?: unknown; cause?: { message?: unknown; code?: unknown } };
  return String(cause?.message || cause?.code || message || error);
}
