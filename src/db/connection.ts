// One connection to one server, which knows two things that the driver does not tell: whether the server is a standby, and
// whether what it has answered is certain.

import pg from 'pg';
import { mayBeSaidByStandby, SQLSTATE } from '#core/failure.ts';
import { ConnectionLost, isRefusal } from './lost.ts';
import { isPooled } from './pooler.ts';

/** Where Postgres warns that it no longer waits for the standbys, after a cancel or a shutdown. The commit stands, here alone. */
const GIVEN_UP_WAIT = 'SyncRepWaitForLSN';

interface Inside {
  readonly connection: NodeJS.EventEmitter & { readonly stream: { destroy(): void } };
}

export class Connection extends pg.Client {
  readonly address: string;
  /** As the server reports it at login and whenever it changes; what a pooler hands on is of another server, or old. */
  #reported: boolean | undefined;
  #isCertain = true;

  constructor(config: pg.ClientConfig & { connectionString: string }) {
    super(config);
    this.address = config.connectionString;
    if (!isPooled())
      this.#inside.on('parameterStatus', ({ parameterName, parameterValue }) => {
        if (parameterName === 'in_hot_standby') this.#reported = parameterValue === 'on';
      });
    this.on('notice', ({ routine }) => {
      if (routine === GIVEN_UP_WAIT) this.#isCertain = false;
    });
    // A connection that breaks tells its query and its listeners; without one, the second telling would end the process.
    // From the very first moment: a server that dies can say so in the same packet in which it says welcome.
    this.on('error', ignore);
  }

  get #inside(): Inside['connection'] {
    return (this as unknown as Inside).connection;
  }

  /** By what the server has reported, else by asking it. */
  async isStandby(): Promise<boolean> {
    return this.#reported ?? (await this.query('select pg_is_in_recovery() as yes')).rows[0].yes;
  }

  /** Throws where what was committed may be on this server alone: a failover would take it back. */
  assertCertain(): void {
    if (!this.#isCertain)
      throw new ConnectionLost('the wait for the standbys was cancelled', SQLSTATE.completionUnknown);
  }

  /** What a standby has refused the primary may do: the error is then the connection's, not the statement's. */
  async explain(error: unknown): Promise<unknown> {
    if (this.#reported === false || !isRefusal(error) || !mayBeSaidByStandby(error)) return error;
    return (await this.isStandby())
      ? new ConnectionLost('the server is a standby', SQLSTATE.notPrimary, error)
      : error;
  }

  /** Ends it without a word: the server may be silent. */
  destroy(): void {
    this.#inside.stream.destroy();
  }
}

function ignore(): void {}
