// A pool of connections that calls SQL functions by named arguments; several in one transaction where a handler needs it.

import pg from 'pg';
import { blameOf, codeOf, hasLostSession, SQLSTATE } from '#core/failure.ts';
import type { Log } from '#core/ports.ts';
import type { Transact } from '#core/transaction.ts';
import { Connection } from './connection.ts';
import { ConnectionLost, isRefusal, withCode } from './lost.ts';
import { CONNECT_TIMEOUT_MS, type Home, openHome } from './primary.ts';
import { asSent, type Session, sessionWith } from './session.ts';
import { queryFor } from './statement.ts';
import { RolledBack, transactOn } from './transaction.ts';
import { TYPES } from './values.ts';

export interface Database {
  /** Calls `schema.function`; returns its rows. A timestamp comes as ISO 8601 text in UTC, a bigint as a number. Inside JSON, a
   *  number that a double would round comes as text. */
  call<Row>(functionName: string, args: Record<string, unknown>): Promise<Row[]>;
  readonly transact: Transact;
  end(): Promise<void>;
}

export interface DatabaseOptions {
  /** With several hosts, calls go to the one that is the primary now. */
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

type PooledConnection = Connection & pg.PoolClient;

export function createDatabase(options: DatabaseOptions): Database {
  const {
    url,
    max,
    applicationName,
    callTimeoutMs = CALL_TIMEOUT_MS,
    lockTimeoutMs = LOCK_TIMEOUT_MS,
    log,
  } = options;
  const session = sessionWith({
    // Never wait long for a lock, because other sessions queue up behind the waiter; the caller is told to try again.
    lock_timeout: lockTimeoutMs,
    statement_timeout: callTimeoutMs - SERVER_LEAD_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
  });
  const home = openHome(url, log);
  const open = new Set<Connection>();
  // The pool makes its connections by itself, when it needs one: each goes to where the database is then.
  let lastAddress = url;
  class PoolConnection extends Connection {
    constructor(config: pg.ClientConfig) {
      lastAddress = home.address ?? lastAddress;
      super({ ...config, connectionString: lastAddress });
      open.add(this);
      this.once('end', () => open.delete(this));
    }
  }
  const pool = new pg.Pool({
    Client: PoolConnection as never,
    max,
    application_name: applicationName,
    ...session.login,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: callTimeoutMs,
    // Few connections, kept for ever: an idle one costs less than a connect in the middle of a burst.
    idleTimeoutMillis: 0,
    keepAlive: true,
    types: TYPES,
  });
  // An idle connection that breaks is replaced by the next call; without a listener it would end the process.
  pool.on('error', (error) => {
    home.doubt();
    log.warn('idle database connection lost', { application_name: applicationName, cause: error });
  });
  const forgetMoves = home.onMove(() => {
    for (const connection of open) if (connection.address !== home.address) connection.destroy();
  });

  return {
    call: async <Row>(functionName: string, args: Record<string, unknown>) => {
      const query = queryFor(functionName, args);
      return (await use(pool, home, (client) => send(client, session, query), isRefusal)) as Row[];
    },
    transact: (work, timeoutMs) =>
      use(
        pool,
        home,
        (client) => transactOn(client, session, work, timeoutMs),
        (error) => error instanceof RolledBack,
      ),
    async end() {
      // The pool forgets its clients before their sockets are closed. Wait for both: the caller relies on closed connections.
      const closed = [...open].map(
        (client) => new Promise<void>((resolve) => client.once('end', () => resolve())),
      );
      await pool.end();
      await Promise.all(closed);
      forgetMoves();
      await home.close();
    },
  };
}

/** A refusal is an answer too. Its transaction was undone and waited for nothing, so another one waits for the cell. */
async function send(client: PooledConnection, session: Session, query: pg.QueryConfig): Promise<unknown[]> {
  const ask = session.isPooled ? askInTransaction : askAlone;
  try {
    return await ask(client, session, query);
  } catch (error) {
    if (blameOf(error) === 'refused' && isRefusal(error))
      await ask(client, session, queryFor('public.answer_in_cell', {}));
    throw error;
  }
}

async function askAlone(client: PooledConnection, _: Session, query: pg.QueryConfig): Promise<unknown[]> {
  return (await client.query(query)).rows;
}

/** Its timeouts hold for one transaction only, so the call has one of its own. */
async function askInTransaction(
  client: PooledConnection,
  session: Session,
  query: pg.QueryConfig,
): Promise<unknown[]> {
  await client.query(session.begin);
  let rows: unknown[];
  try {
    rows = (await client.query(asSent(session, query))).rows;
  } catch (error) {
    // Else the connection goes, and the transaction with it.
    if (isRefusal(error)) await client.query('rollback');
    throw error;
  }
  await client.query('commit');
  return rows;
}

/** Pool.query would throw away the connection after any error; a refusal of our own functions leaves it as good as new. */
async function use<Result>(
  pool: pg.Pool,
  home: Home,
  work: (client: PooledConnection) => Promise<Result>,
  staysGood: (error: unknown) => boolean,
): Promise<Result> {
  if (pool.waitingCount >= MAX_WAITING_CALLS)
    throw new ConnectionLost('too many calls are waiting', SQLSTATE.tooManyConnections);
  try {
    if (home.address === undefined) await home.find();
    const client = (await pool.connect()) as PooledConnection;
    let isBroken = true;
    try {
      if (client.address !== home.address) throw new ConnectionLost('the primary has moved');
      const result = await work(client);
      client.assertCertain();
      isBroken = false;
      return result;
    } catch (error) {
      const reason = error instanceof RolledBack ? error.cause : error;
      const explained = await client.explain(reason).catch(() => reason);
      isBroken = !staysGood(error) || explained !== reason || codeOf(explained) === SQLSTATE.notPrimary;
      throw explained;
    } finally {
      client.release(isBroken);
    }
  } catch (error) {
    const coded = withCode(error);
    if (hasLostSession(coded) || codeOf(coded) === SQLSTATE.notPrimary) home.doubt();
    throw coded;
  }
}
