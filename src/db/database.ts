// A pool of connections that calls SQL functions by named arguments; several in one transaction where a handler needs it.

import pg from 'pg';
import { TimedOut, within } from '#core/deadline.ts';
import { parseJsonb, parseWithDigits } from '#core/digits.ts';
import { SQLSTATE } from '#core/failure.ts';
import type { Log } from '#core/ports.ts';
import { type Transact, type Transaction, TransactionEnded } from '#core/transaction.ts';
import { statementFor } from './statement.ts';

export interface Database {
  /** Calls `schema.function`; returns its rows. Timestamps come as ISO 8601 text in UTC, bigints as numbers, numbers in JSON
   *  that a double would round as text. */
  call<Row>(functionName: string, args: Record<string, unknown>): Promise<Row[]>;
  readonly transact: Transact;
  end(): Promise<void>;
}

export interface DatabaseOptions {
  url: string;
  /** The largest number of connections. */
  max: number;
  /** How the connections show in pg_stat_activity. */
  applicationName: string;
  /** The longest a call may take on its connection; half a minute where left out. */
  callTimeoutMs?: number;
  /** The longest it may wait for a lock; two seconds where left out. */
  lockTimeoutMs?: number;
  log: Log;
}

/** Also the longest wait for a free connection. */
const CONNECT_TIMEOUT_MS = 3_000;
/** Far longer than any call of a door takes while the database answers. */
const CALL_TIMEOUT_MS = 32_000;
/** For what may bring back the slots of a pool: 1 million take 5 to 25 s, by how busy the machine is. */
export const REBUILD_TIMEOUT_MS = 15 * 60 * 1_000;
/** The server gives up so much earlier, and says so with a SQLSTATE; the client's own clock is for one that went silent. */
const SERVER_LEAD_MS = 2_000;
const LOCK_TIMEOUT_MS = 2_000;
/**
 * For a lane in which many wait behind each statement. A statement there waits only for a transaction that has the same request
 * or event in its hands, usually for milliseconds; one that stays goes to the side lane. Twice this and a usual wait stay
 * below the quarter of a second that a neighbour may notice.
 */
export const LANE_LOCK_TIMEOUT_MS = 100;
/** For a client that went silent in a transaction, with its locks: longer than any of ours waits between two statements. */
const IDLE_IN_TRANSACTION_MS = 60_000;
/** Calls that wait for a connection; beyond it the database counts as unreachable instead of memory growing. */
const MAX_WAITING_CALLS = 1_000;

const TIMESTAMPTZ_OID = 1184;
const BIGINT_OID = 20;
const JSON_OID = 114;
const JSONB_OID = 3802;

/** A lost connection, as a SQLSTATE; the driver has a message for it but no code. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  readonly code: string;

  constructor(message: string, code: string = SQLSTATE.connectionFailure, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

// The driver's own errors carry no code, the server's and the system's always do.
function withCode(error: unknown): unknown {
  if (!(error instanceof Error) || 'code' in error || error instanceof AggregateError) return error;
  return /connect|terminated|timeout|not queryable/i.test(error.message)
    ? new ConnectionLost(error.message, SQLSTATE.connectionFailure, error)
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
  // A number that a double would round comes as a text.
  [JSON_OID, parseWithDigits],
  [JSONB_OID, parseJsonb],
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
  if (pool.waitingCount >= MAX_WAITING_CALLS)
    throw new ConnectionLost('too many calls are waiting', SQLSTATE.tooManyConnections);
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

interface OpenTransaction {
  readonly tx: Transaction;
  /** From now on it takes no statement. True where the work has ended the transaction itself. */
  close(): boolean;
}

function transactionOn(client: pg.PoolClient): OpenTransaction {
  let isOpen = true;
  let wasEnded = false;
  const send = async <Row>(query: pg.QueryConfig): Promise<Row[]> => {
    if (!isOpen) throw new Error('the transaction is over');
    if (wasEnded) throw endedByWork();
    const { rows } = await client.query(query);
    if (client.getTransactionStatus() === 'I') wasEnded = true;
    return rows as Row[];
  };
  const guarded = <Row>(query: pg.QueryConfig): Promise<Row[]> => {
    const answer = send<Row>(query);
    // Work that does not wait for a statement must not end the process with it: the commit will find out.
    answer.catch(ignore);
    return answer;
  };
  return {
    tx: {
      call: (functionName, args) => guarded(queryFor(functionName, args)),
      // One statement, so that none hides behind another and ends the transaction unseen.
      query: (text, values = []) =>
        guarded({ text, values: [...values], queryMode: 'extended' } as pg.QueryConfig),
    },
    close() {
      isOpen = false;
      return wasEnded;
    },
  };
}

function endedByWork(): TransactionEnded {
  return new TransactionEnded(
    'the handler has ended its transaction, so that its effect may stand without a mark',
  );
}

async function transactOn<Result>(
  client: pg.PoolClient,
  work: (tx: Transaction) => Promise<Result>,
  timeoutMs: number,
): Promise<Result> {
  await client.query('begin');
  const { tx, close } = transactionOn(client);
  let result: Result;
  try {
    result = await within(() => work(tx), timeoutMs);
  } catch (error) {
    const reason = close() ? endedByWork() : error;
    // It may be in the middle of a statement: the connection goes, and the transaction with it.
    if (error instanceof TimedOut) throw reason;
    await client.query('rollback');
    throw new RolledBack(reason);
  }
  close();
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

export function createDatabase(options: DatabaseOptions): Database {
  const {
    url,
    max,
    applicationName,
    callTimeoutMs = CALL_TIMEOUT_MS,
    lockTimeoutMs = LOCK_TIMEOUT_MS,
    log,
  } = options;
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: applicationName,
    // Nobody waits long for a lock behind which a crowd queues up; the caller is told to try again.
    options: `-c timezone=UTC -c lock_timeout=${lockTimeoutMs}`,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: callTimeoutMs - SERVER_LEAD_MS,
    query_timeout: callTimeoutMs,
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
    transact: async (work, timeoutMs) => {
      try {
        return await use(
          pool,
          (client) => transactOn(client, work, timeoutMs),
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
