// Connections of its own for each handler: what one handler does slowly uses up no other handler's.

import type { Database } from '../db/database.ts';

/** By the handler's name or lane. Opened when the handler first has an event; there are as many as there are handlers. */
export class HandlerDatabases {
  readonly #open: () => Database;
  readonly #opened = new Map<string | number, Database>();

  constructor(open: () => Database) {
    this.#open = open;
  }

  of(handler: string | number): Database {
    let database = this.#opened.get(handler);
    if (database === undefined) {
      database = this.#open();
      this.#opened.set(handler, database);
    }
    return database;
  }

  async end(): Promise<void> {
    await Promise.all([...this.#opened.values()].map((database) => database.end()));
  }
}
