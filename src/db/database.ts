// A pool of connections that calls SQL functions by named arguments; several in one transaction where a handler needs it.

import pg from 'pg';
import type { Log } from '#core/ports.ts';
import type { Transaction } from '#core/webhook/handlers.ts';
import { statementFor } from './statement.ts';

export interface Database {
  /** Calls `schema.function`; returns its rows. Timestamps come as ISO 8601 text in UTC, bigints as numbers. */
  call<Row>(functionName: string, args: Record<string, unknown>): Promise<Row[]>;
  /** Commits when the work resolves; rolls back and rejects with the work's own error when it rejects. */
  transact<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result>;
  end(): Promise<void>;
}

export interface DatabaseOptions {
  url: string;
  /** The largest number of connections. */
  max: number;
  /** How the connections show in pg_stat_activity. */
  applicationName: string;
  log: Log;
}

/** Also the longest wait for a free connection. */
const CONNECT_TIMEOUT_MS = 3_000;
/**
 * The longest call of a door is the first claim after a crash, which rebuilds the pool's slots: about 5 s for a million.
 * The server gives up first, and says so with a SQLSTATE.
 */
const STATEMENT_TIMEOUT_MS = 30_000;
const LOCK_TIMEOUT_MS = 2_000;
/** For a server that went silent: the client gives up a little later. */
const QUERY_TIMEOUT_MS = 32_000;
/** Calls that wait for a connection; beyond it the database counts as unreachable instead of memory growing. */
const MAX_WAITING_CALLS = 1_000;

const TIMESTAMPTZ_OID = 1184;
const BIGINT_OID = 20;

/** A lost connection, as a SQLSTATE; the driver has a message for it but no code. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  readonly code: string;

  constructor(message: string, code = '08006', cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

// The driver's own errors carry no code, the server's and the system's always do.
function withCode(error: unknown): unknown {
  if (!(error instanceof Error) || 'code' in error || error instanceof AggregateError) return error;
  return /connect|terminated|timeout|not queryable/i.test(error.message)
    ? new ConnectionLost(error.message, '08006', error)
    : error;
}

/** "2026-02-24 10:00:00.5+00" → "2026-02-24T10:00:00.5Z"; a Date would cost more and drop the microseconds. */
function isoTimestamp(text: string): string {
  if (text.endsWith('+00')) return `${text.slice(0, 10)}T${text.slice(11, -3)}Z`;
  const date = new Date(text);
  // 'infinity' is a timestamp too, and stays what it is.
  return Number.isNaN(date.getTime()) ? text : date.toISOString();
}

/** Counts and message ids stay far below 2^53; one that does not is an error, not a rounded number. */
function safeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('a bigint from the database is beyond 2^53');
  return value;
}

const PARSERS = new Map<number, (text: string) => unknown>([
  [TIMESTAMPTZ_OID, isoTimestamp],
  [BIGINT_OID, safeInteger],
]);

/** A list of objects is one JSON document; the driver would make a Postgres array of it. Lists of scalars are arrays. */
function parameter(value: unknown): unknown {
  const isJson = Array.isArray(value) && value.some((item) => typeof item === 'object' && item !== null);
  return isJson ? JSON.stringify(value) : value;
}

function ignore(): void {}

/** Pool.query would throw away the connection after any error; a refusal of our own functions leaves it as good as new. */
async function use<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
  staysGood: (error: unknown) => boolean,
): Promise<Result> {
  if (pool.waitingCount >= MAX_WAITING_CALLS) throw new ConnectionLost('too many calls are waiting', '53300');
  let isBroken = true;
  try {
    const client = await pool.connect();
    try {
      const result = await work(client);
      isBroken = false;
      return result;
    } catch (error) {
      isBroken = !staysGood(error);
      throw error;
    } finally {
      client.release(isBroken);
    }
  } catch (error) {
    throw withCode(error);
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.severity === 'ERROR';
}

function queryFor(functionName: string, args: Record<string, unknown>): pg.QueryConfig {
  const names = Object.keys(args);
  const { name, text } = statementFor(functionName, names);
  return { name, text, values: names.map((key) => parameter(args[key])) };
}

function transactionOn(client: pg.PoolClient): Transaction {
  return {
    call: async <Row>(functionName: string, args: Record<string, unknown>) =>
      (await client.query(queryFor(functionName, args))).rows as Row[],
    query: async <Row>(text: string, values: readonly unknown[] = []) =>
      (await client.query(text, [...values])).rows as Row[],
  };
}

async function transactOn<Result>(
  client: pg.PoolClient,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  await client.query('begin');
  let result: Result;
  try {
    result = await work(transactionOn(client));
  } catch (error) {
    await client.query('rollback');
    throw new RolledBack(error);
  }
  const { command } = await client.query('commit');
  // Work that swallowed an error of the database leaves a transaction whose commit is a rollback, without an error.
  if (command !== 'COMMIT') throw new RolledBack(new Error('the transaction had failed and was rolled back'));
  return result;
}

/** The transaction is over and its connection as good as new, whatever the work has thrown. */
class RolledBack extends Error {
  constructor(cause: unknown) {
    super('rolled back', { cause });
  }
}

export function createDatabase({ url, max, applicationName, log }: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: applicationName,
    // Nobody waits long for a lock behind which a crowd queues up; the caller is told to try again.
    options: `-c timezone=UTC -c lock_timeout=${LOCK_TIMEOUT_MS}`,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    // Few connections, kept for ever: an idle one costs less than a connect in the middle of a burst.
    idleTimeoutMillis: 0,
    keepAlive: true,
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        PARSERS.get(oid) ?? pg.types.getTypeParser(oid, format as 'text'),
    },
  });
  // An idle connection that breaks is replaced by the next call; without a listener it would end the process.
  pool.on('error', (error) =>
    log.warn('idle database connection lost', { application_name: applicationName, cause: error }),
  );

  const open = new Set<pg.PoolClient>();
  pool.on('connect', (client) => {
    open.add(client);
    // A connection that breaks tells its query and its listeners; without one, the second telling would end the process.
    // From the very first moment: a server that dies can say so in the same packet in which it says welcome.
    client.on('error', ignore);
    client.once('end', () => open.delete(client));
  });

  return {
    call: async <Row>(functionName: string, args: Record<string, unknown>) => {
      const query = queryFor(functionName, args);
      const rows: unknown[] = await use(pool, async (client) => (await client.query(query)).rows, isRefusal);
      return rows as Row[];
    },
    transact: async (work) => {
      try {
        return await use(
          pool,
          (client) => transactOn(client, work),
          (error) => error instanceof RolledBack,
        );
      } catch (error) {
        throw error instanceof RolledBack ? error.cause : error;
      }
    },
    async end() {
      // The pool forgets its clients before their sockets are closed; whoever ends it may count on their being gone.
      const closed = [...open].map(
        (client) => new Promise<void>((resolve) => client.once('end', () => resolve())),
      );
      await pool.end();
      await Promise.all(closed);
    },
  };
}
