// SQL functions over PostgREST. supabase-js never throws: a refusal, an outage and an answer all come back as values, and
// one that is not looked at is a sold slot sold again.

import type { CallFunction } from '../call_function.ts';
import { within } from '../deadline.ts';
import { codeOfAnswer, isSqlstate, SQLSTATE } from '../failure.ts';

/** What we use of a supabase-js client. */
export interface RpcClient {
  rpc(functionName: string, args: Record<string, unknown>): PromiseLike<RpcAnswer>;
}

interface RpcAnswer {
  readonly data: unknown;
  readonly error: { readonly message: string; readonly code?: string } | null;
  /** 0 if no answer came. */
  readonly status: number;
}

/** What the functions pass to supabase-js; nothing is signed in here, and nothing is kept. */
export interface ClientOptions {
  readonly auth: { readonly persistSession: false; readonly autoRefreshToken: false };
  readonly global: { readonly fetch: typeof timedFetch };
  readonly db: { readonly schema: string };
}

export type CreateClient = (url: string, key: string, options: ClientOptions) => RpcClient;

/** Calls functions of this schema of one of the databases, whose address and key stand in the environment. */
export function callDatabase(
  createClient: CreateClient,
  env: (name: string) => string | undefined,
  side: 'DB1' | 'DB2',
  schema = 'public',
): CallFunction {
  return callOver(() =>
    createClient(env(`${side}_SUPABASE_URL`) ?? '', env(`${side}_SUPABASE_SERVICE_ROLE_KEY`) ?? '', {
      auth: { persistSession: false, autoRefreshToken: false },
      global: { fetch: timedFetch },
      db: { schema },
    }),
  );
}

/** One call may take this long; a step makes about three of them after its signal, and its lease outlasts them. */
const CALL_TIMEOUT_MS = 10_000;

export class RpcError extends Error {
  override readonly name = 'RpcError';
  /** The SQLSTATE, or PostgREST's own code where it refused before the database was asked. */
  readonly code: string;
  /** Of what a statement said; PostgREST's own connection has no codes of Postgres. */
  readonly severity: 'ERROR' | undefined;

  constructor(message: string, code: string, cause?: unknown, severity?: 'ERROR') {
    super(message, { cause });
    this.code = code;
    this.severity = severity;
  }
}

/** The client is made at the first call, and kept. */
export function callOver(createClient: () => RpcClient): CallFunction {
  let client: RpcClient | undefined;
  return async <Row>(functionName: string, args: Record<string, unknown>): Promise<Row[]> => {
    client ??= make(createClient);
    // It becomes a part of a path: a name that a pool gives must not lead elsewhere, with the service role key.
    const { data, error, status } = await client.rpc(encodeURIComponent(functionName), args);
    if (error === null) return toRows(functionName, data) as Row[];
    throw new RpcError(
      `${functionName}: ${error.message} (status ${status})`,
      codeOfAnswer(error.code ?? '', status),
      undefined,
      isSqlstate(error.code ?? '') ? 'ERROR' : undefined,
    );
  };
}

/** A database whose address or key is not set is one that cannot be reached: nothing is wrong with the messages. */
function make(createClient: () => RpcClient): RpcClient {
  try {
    return createClient();
  } catch (error) {
    throw new RpcError('no client for this database: is its address set?', SQLSTATE.noConnection, error);
  }
}

/** PostgREST answers rows as objects, scalars bare; a scalar becomes a row with a column of the function's name. */
function toRows(functionName: string, data: unknown): unknown[] {
  if (!Array.isArray(data)) return [{ [functionName]: data }];
  return data.map((item) => (typeof item === 'object' && item !== null ? item : { [functionName]: item }));
}

/**
 * A `fetch` that gives up: without it a database that went silent would hold a worker for ever. A 404 with nothing or a list
 * in it, which supabase-js takes for a yes, is not PostgREST's: it becomes a 502.
 */
export function timedFetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const call = async (signal: AbortSignal): Promise<Response> => {
    const answer = await fetch(input, { ...init, signal });
    // Read here, because the limit holds for the whole answer.
    const text = await answer.text();
    const isGateways = answer.status === 404 && !text.startsWith('{');
    const status = isGateways ? 502 : answer.status;
    // An answer that may not have a body, as 204, refuses an empty text too.
    return new Response(text || null, { status, headers: answer.headers });
  };
  return within(call, CALL_TIMEOUT_MS, init.signal ?? undefined);
}
