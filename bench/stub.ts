// A database call that costs nothing: what the rest of the server can do at most.

import pg from 'pg';

type Query = { text?: string; values?: readonly unknown[] };
type Send = (this: pg.Client, query: unknown, ...rest: unknown[]) => unknown;

/**
 * Until the function that it returns is called, this process answers calls of a SQL function itself. The answer comes in the next
 * turn of the event loop, as from a database that takes no time: requests that arrived in one turn go together.
 */
export function stubCall(
  functionName: string,
  answer: (values: readonly unknown[]) => readonly object[],
): () => void {
  const begin = `select * from ${functionName}(`;
  const driver = pg.Client.prototype as unknown as { query: Send };
  const real = driver.query;
  driver.query = function (query, ...rest) {
    const { text, values = [] } = (query ?? {}) as Query;
    if (!text?.startsWith(begin)) return Reflect.apply(real, this, [query, ...rest]);
    return new Promise((resolve) => setImmediate(() => resolve({ rows: answer(values) })));
  };
  return () => {
    driver.query = real;
  };
}

/** The members of an array as the server writes it for Postgres; none of them may need an escape. */
export function membersOf(array: unknown): unknown[] {
  return JSON.parse(`[${String(array).slice(1, -1)}]`);
}
