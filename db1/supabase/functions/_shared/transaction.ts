// A transaction that several calls share, as the code inside it sees it.

/** The transaction in which the effect and the mark on the event commit together. Refuses when it is over. */
export interface Transaction {
  /** Calls `schema.function` by named arguments; returns its rows. */
  call<Row>(functionName: string, args: Record<string, unknown>): Promise<Row[]>;
  /** One statement; returns its rows. */
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

/**
 * Commits when the work resolves; when it rejects, rolls back and rejects with the same error. Work that is not done
 * within `timeoutMs` is TimedOut, and its connection is closed under it. Work that ends the transaction itself is
 * TransactionEnded. Any other error is the database's own.
 */
export type Transact = <Result>(
  work: (tx: Transaction) => Promise<Result>,
  timeoutMs: number,
) => Promise<Result>;

/** The work has sent `commit` or `rollback` itself: a part of its effect may stand by itself. */
export class TransactionEnded extends Error {
  override readonly name = 'TransactionEnded';
}
