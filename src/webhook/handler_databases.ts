// Connections of its own for each handler: what one handler does slowly uses up no other handler's.

import type { Database } from '../db/database.ts';

/** By the handler's name or lane. Opened when the handler first has an event; there are as many as there are handlers. */
export class HandlerDatabases<Key extends string | number> {
  readonly #open: (handler: Key) => Database;
  readonly #opened = new Map<Key, Database>();

  constructor(open: (handler: Key) => Database) {
    this.#open = open;
  }

  of(handler: Key): Database {
    let database = this.#opened.get(handler);
    if (database === undefined) {
      database = this.#open(handler);
      this.#opened.set(handler, database);
    }
    return database;
  }

  async end(): Promise<void> {
    await Promise.all([...this.#opened.values()].map((database) => database.end()));
  }
}
