// DB2 as webhooks use it on Node: the store of the core over a connection, and connections of its own for each handler.

import type { WebhookStore } from '#core/webhook/ports.ts';
import { createWebhookStore } from '#core/webhook/store.ts';
import type { Database } from '../db/database.ts';
import { base64Of } from '../db/values.ts';

export function openWebhookStore(database: Database): WebhookStore {
  return createWebhookStore((name, args) => database.call(`webhook.${name}`, args), base64Of);
}

/**
 * A slow handler uses up no other handler's connections. By the handler's name or lane: opened when the handler first has an event, and
 * as many as there are handlers.
 */
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
