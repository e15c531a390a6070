// Handlers that users bring: a module whose default export is a list of them, named by SLUICE_HANDLERS.

import type { Log } from '#core/ports.ts';
import type { Handler } from '#core/webhook/handlers.ts';
import type { Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { importDefault } from './import_module.ts';

export type Handlers = ReadonlyMap<string, Handler>;

export const NO_HANDLERS: Handlers = new Map();

/** Events that wait longer than this for a handler wait for one that nobody serves. */
const MISSING_SEC = 60;

const NAME = /^[a-z][a-z0-9_-]{0,99}$/;

/** The handlers of the module at `path`, as seen from the working folder; none where no path is given. */
export async function loadHandlers(path: string | undefined): Promise<Handlers> {
  if (!path) return NO_HANDLERS;
  const list = await importDefault(path, 'the handlers', 'SLUICE_HANDLERS');
  if (!Array.isArray(list)) throw wrong(path, 'its default export is not a list of handlers');
  const handlers = new Map<string, Handler>();
  for (const [index, handler] of list.entries()) {
    const fault = faultOf(handler) ?? (handlers.has(handler.name) ? 'has the name of another' : undefined);
    if (fault !== undefined) throw wrong(path, `handler ${index + 1} ${fault}`);
    handlers.set(handler.name, handler);
  }
  return handlers;
}

function wrong(path: string, what: string): StackError {
  return new StackError(`${path}: ${what}`, 'see docs/extend_webhooks.md');
}

function faultOf(handler: Partial<Handler> | null | undefined): string | undefined {
  if (typeof handler !== 'object' || handler === null) return 'is not an object';
  const { name, provider, types, call, apply } = handler;
  if (typeof name !== 'string' || !NAME.test(name)) return `has no name like ${NAME.source}`;
  if (typeof provider !== 'string') return 'has no provider';
  const hasTypes =
    Array.isArray(types) && types.length > 0 && types.every((type) => typeof type === 'string');
  if (!hasTypes) return 'has no types';
  if (typeof apply !== 'function') return 'has no function apply';
  return call === undefined || typeof call === 'function' ? undefined : 'has a call that is not a function';
}

/** Tells the database which events are for these handlers, so that workers without them leave such events alone. */
export async function registerHandlers(database: Database, handlers: Handlers): Promise<void> {
  if (handlers.size === 0) return;
  const rows = [...handlers.values()].flatMap(({ name, provider, types, webhookId }) =>
    types.map((type) => ({ name, provider, event_type: type, webhook_id: webhookId ?? null })),
  );
  await database.call('webhook.register_handlers', { p_handlers: rows });
}

interface MissingRow {
  readonly name: string;
  readonly events: number;
  readonly oldest_due_sec: number;
}

/** Events are left to whoever has their handler; where nobody has it, they would wait for ever and nobody would know. */
export async function warnOfMissingHandlers(database: Database, handlers: Handlers, log: Log): Promise<void> {
  const rows = await database.call<MissingRow>('webhook.missing_handlers', { p_sec: MISSING_SEC });
  for (const { name, events, oldest_due_sec } of rows) {
    if (handlers.has(name)) continue;
    const details = { handler: name, events, oldest_due_sec: Math.round(oldest_due_sec) };
    log.warn('events wait for a handler that no worker serves', details);
  }
}
