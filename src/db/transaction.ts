// Several calls in one transaction, for a handler: its effect and its mark commit together or not at all.

import type pg from 'pg';
import { TimedOut, within } from '#core/deadline.ts';
import { type Transaction, TransactionEnded } from '#core/transaction.ts';
import { asSent, type Session } from './session.ts';
import { queryFor } from './statement.ts';

interface OpenTransaction {
  readonly tx: Transaction;
  /** From now on it takes no statement. True where the work has ended the transaction itself. */
  close(): boolean;
}

function transactionOn(client: pg.PoolClient, session: Session): OpenTransaction {
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
      call: (functionName, args) => guarded(asSent(session, queryFor(functionName, args))),
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

export async function transactOn<Result>(
  client: pg.PoolClient,
  session: Session,
  work: (tx: Transaction) => Promise<Result>,
  timeoutMs: number,
): Promise<Result> {
  await client.query(session.begin);
  const { tx, close } = transactionOn(client, session);
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
export class RolledBack extends Error {
  constructor(cause: unknown) {
    super('rolled back', { cause });
  }
}

function ignore(): void {}
