// Where a database is now. An address with one host is where it always is. With several hosts, one watcher per process and
// address finds the primary and tells all connections when it moves.

import { setTimeout as pause } from 'node:timers/promises';
import { SQLSTATE } from '#core/failure.ts';
import type { Log } from '#core/ports.ts';
import { createLog } from '../log.ts';
import { Connection } from './connection.ts';
import { hostOf, hostsOf } from './hosts.ts';
import { ConnectionLost } from './lost.ts';
import { sessionWith } from './session.ts';

export interface Home {
  /** The address of the primary; undefined while none is known. */
  readonly address: string | undefined;
  /** The same, waited for no longer than a connect may take, counted from the loss of the last one. */
  find(): Promise<string>;
  /** A connection there has failed, or the server says that it is a standby: look now, not at the next beat. */
  doubt(): void;
  /** The listener is told of each new address, and of the loss of one. Returns how to stop it. */
  onMove(listener: () => void): () => void;
  close(): Promise<void>;
}

/** Also the longest wait for a free connection, and for a primary. */
export const CONNECT_TIMEOUT_MS = 3_000;
/** What a server has to log in, and again to commit the barrier: a primary that takes longer cannot serve a crowd either. */
const ANSWER_MS = 2_000;
const BEAT_MS = 1_000;
/** While no primary is known. */
const LOOK_AGAIN_MS = 250;
/** However many calls fail, the servers are not asked more often. */
const AT_LEAST_MS = 100;
/**
 * Commits a record that says nothing. The commit returns when the standbys that the server must wait for have it, so a primary
 * that was cut off from its cell does not pass, although it still answers reads.
 */
const BARRIER = "select pg_catalog.pg_logical_emit_message(true, 'sluice', '')";

export function openHome(url: string, log: Log): Home {
  return hostsOf(url).length > 1 ? joinWatcher(url, log) : fixed(url);
}

/** For one connection that is made now. */
export async function primaryOf(url: string): Promise<string> {
  const home = openHome(url, createLog('silent'));
  try {
    return await home.find();
  } finally {
    await home.close();
  }
}

function fixed(address: string): Home {
  return {
    address,
    find: async () => address,
    doubt: ignore,
    onMove: () => ignore,
    close: async () => undefined,
  };
}

const watchers = new Map<string, { watcher: Watcher; users: number }>();

function joinWatcher(url: string, log: Log): Home {
  const shared = watchers.get(url) ?? { watcher: new Watcher(url, log), users: 0 };
  shared.users++;
  watchers.set(url, shared);
  const { watcher } = shared;
  let isClosed = false;
  return {
    get address() {
      return watcher.address;
    },
    find: () => watcher.find(),
    doubt: () => watcher.doubt(),
    onMove: (listener) => watcher.onMove(listener),
    async close() {
      if (isClosed) return;
      isClosed = true;
      if (--shared.users > 0) return;
      watchers.delete(url);
      await watcher.close();
    },
  };
}

class Watcher {
  address: string | undefined;
  readonly #hosts: readonly string[];
  readonly #log: Log;
  readonly #listeners = new Set<() => void>();
  /** Those under way and the one to the primary. */
  readonly #connections = new Set<Connection>();
  readonly #running: Promise<void>;
  #held: Connection | undefined;
  #isClosed = false;
  #isTold = false;
  #endRest: () => void = ignore;
  #lostAtMs = performance.now();
  #reasons = 'no server was asked yet';

  constructor(url: string, log: Log) {
    this.#hosts = hostsOf(url);
    this.#log = log;
    this.#running = this.#run();
  }

  find(): Promise<string> {
    if (this.address !== undefined) return Promise.resolve(this.address);
    return new Promise((resolve, reject) => {
      const give = (): void => {
        if (this.address !== undefined) settle(() => resolve(this.address as string));
        else if (this.#isClosed) giveUp();
      };
      const giveUp = (): void =>
        settle(() => reject(new ConnectionLost(`no primary: ${this.#reasons}`, SQLSTATE.noConnection)));
      // From the loss, and not from now: calls that wait one behind another would wait longer each.
      const timer = setTimeout(giveUp, this.#lostAtMs + CONNECT_TIMEOUT_MS - performance.now());
      const forget = this.onMove(give);
      const settle = (end: () => void): void => {
        clearTimeout(timer);
        forget();
        end();
      };
    });
  }

  doubt(): void {
    if (this.address !== undefined) this.#endRest();
  }

  onMove(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endRest();
    for (const connection of this.#connections) connection.destroy();
    await this.#running;
    this.#moveTo(undefined);
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      await this.#beat();
      await pause(AT_LEAST_MS);
      if (!this.#isClosed)
        await this.#rest((this.address === undefined ? LOOK_AGAIN_MS : BEAT_MS) - AT_LEAST_MS);
    }
    this.#held?.destroy();
  }

  /** A doubt ends it. */
  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endRest = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /**
   * A primary that fails a beat is asked once more on a new connection, together with all others, before its connections are
   * closed: a pause of two seconds is not yet a failover.
   */
  async #beat(): Promise<void> {
    const held = this.#held;
    if (held !== undefined && (await pass(held).catch(isNot))) return;
    if (this.#isClosed) return;
    const found = await this.#look();
    held?.destroy();
    this.#held = found;
    if (!this.#isClosed) this.#moveTo(found?.address);
  }

  /** The first server that is the primary; the others are let go. */
  async #look(): Promise<Connection | undefined> {
    const attempts = this.#hosts.map((address) => this.#ask(address));
    try {
      const found = await Promise.any(attempts);
      for (const connection of this.#connections) if (connection !== found) connection.destroy();
      return found;
    } catch (error) {
      const { errors } = error as AggregateError;
      this.#reasons = errors
        .map((cause, index) => `${hostOf(this.#hosts[index] ?? '')} ${said(cause)}`)
        .join('; ');
      return undefined;
    }
  }

  async #ask(address: string): Promise<Connection> {
    const connection = new Connection({
      connectionString: address,
      application_name: 'sluice-watcher',
      ...sessionWith().login,
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      keepAlive: true,
    });
    this.#connections.add(connection);
    connection.once('end', () => this.#connections.delete(connection));
    try {
      await connection.connect();
      if (await connection.isStandby()) throw new ConnectionLost('is a standby', SQLSTATE.notPrimary);
      await pass(connection);
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  #moveTo(address: string | undefined): void {
    const before = this.address;
    if (address === undefined && !this.#isTold && !this.#isClosed)
      this.#log.warn('no primary; looking until there is one', { asked: this.#reasons });
    this.#isTold = address === undefined;
    if (address !== undefined && address !== before)
      this.#log.info('primary found', { host: hostOf(address), hosts: this.#hosts.length });
    if (address === before && !this.#isClosed) return;
    if (address === undefined) this.#lostAtMs = performance.now();
    this.address = address;
    for (const listener of [...this.#listeners]) listener();
  }
}

async function pass(connection: Connection): Promise<true> {
  const { isPooled, begin } = sessionWith();
  await connection.query(isPooled ? `${begin}; ${BARRIER}; commit` : BARRIER);
  connection.assertCertain();
  return true;
}

function said(cause: unknown): string {
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}

const isNot = (): false => false;

function ignore(): void {}
