// DB2's webhook functions over a Postgres connection.

import type { WebhookStore } from '#core/webhook/ports.ts';
import { createWebhookStore } from '#core/webhook/store.ts';
import type { Database } from '../db/database.ts';

export function openWebhookStore(database: Database): WebhookStore {
  return createWebhookStore((name, args) => database.call(`webhook.${name}`, args), base64Of);
}

export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
