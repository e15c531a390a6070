// Handlers that users bring: a module whose default export is a list of them, named by SLUICE_HANDLERS.

import type { Log } from '#core/ports.ts';
import type { Handler } from '#core/webhook/handlers.ts';
import type { Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { type Loop, startLoop } from '../loop.ts';
import { importDefault } from './import_module.ts';

/** A handler that cannot run. It is registered all the same, as far as it is known, so that its events wait. */
export interface FaultyHandler {
  readonly name: string;
  readonly fault: string;
  readonly registrations: readonly Registration[];
}

/** By name. */
export type Handlers = ReadonlyMap<string, Handler> & { readonly faulty?: readonly FaultyHandler[] };

interface Registration {
  readonly provider: string;
  readonly event_type: string;
  readonly webhook_id: string | null;
}

export const NO_HANDLERS: Handlers = new Map();

const REGISTER_MS = 60 * 1_000;
/** If events wait longer than this for a handler, no worker serves it. */
const MISSING_SEC = 60;

const NAME = /^[a-z][a-z0-9_-]{0,99}$/;
const PROVIDER = /^[a-z0-9][a-z0-9_:-]{0,126}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** A star stands at the end, or nowhere. */
const TYPE = /^(?=.{1,200}$)[^*]*\*?$/s;

/**
 * The handlers of the module at `path`, as seen from the working folder; none where no path is given. A handler with a fault
 * is left out alone, and told to the log.
 */
export async function loadHandlers(path: string | undefined, log: Log): Promise<Handlers> {
  if (!path) return NO_HANDLERS;
  const list = await importDefault(path, 'the handlers', 'SLUICE_HANDLERS');
  if (!Array.isArray(list))
    throw new StackError(
      `${path}: its default export is not a list of handlers`,
      'see docs/extend_webhooks.md',
    );
  const handlers = new Map<string, Handler>();
  const faulty: FaultyHandler[] = [];
  for (const [index, handler] of list.entries()) {
    const fault = faultOf(handler) ?? (handlers.has(handler.name) ? 'has the name of another' : undefined);
    if (fault === undefined) handlers.set(handler.name, handler);
    else faulty.push(describeFaulty(handler, index, fault));
  }
  for (const { name, fault } of faulty) log.error(DISABLED, { handler: name, fault, module: path });
  return Object.assign(handlers, { faulty });
}

const DISABLED = 'a handler is disabled: its events wait';

function describeFaulty(
  handler: Partial<Handler> | null | undefined,
  index: number,
  fault: string,
): FaultyHandler {
  const place = `handler ${index + 1}`;
  const isNamed = typeof handler?.name === 'string' && NAME.test(handler.name);
  // The name of another is that one's own: it must not be disabled with this.
  const name = isNamed && fault !== 'has the name of another' ? (handler?.name ?? place) : place;
  return { name, fault: `${place} ${fault}`, registrations: isNamed ? registrationsOf(handler) : [] };
}

function registrationsOf(handler: Partial<Handler> | null | undefined): Registration[] {
  const { provider, types, webhookId: webhook_id = null } = handler ?? {};
  const isUsable = typeof provider === 'string' && PROVIDER.test(provider) && Array.isArray(types);
  if (!isUsable || !(webhook_id === null || UUID.test(webhook_id))) return [];
  return types.filter(isType).map((event_type) => ({ provider, event_type, webhook_id }));
}

function isType(type: unknown): type is string {
  return typeof type === 'string' && TYPE.test(type);
}

function faultOf(handler: Partial<Handler> | null | undefined): string | undefined {
  if (typeof handler !== 'object' || handler === null) return 'is not an object';
  const { name, provider, types, webhookId, call, apply } = handler;
  if (typeof name !== 'string' || !NAME.test(name)) return `has no name like ${NAME.source}`;
  if (typeof provider !== 'string' || !PROVIDER.test(provider)) return 'has no provider';
  if (!Array.isArray(types) || types.length === 0) return 'has no types';
  if (!types.every(isType)) return 'has an invalid type: 1 to 200 characters, a star at the end only';
  if (webhookId !== undefined && !(typeof webhookId === 'string' && UUID.test(webhookId)))
    return 'has a webhookId that is not a UUID';
  if (typeof apply !== 'function') return 'has no function apply';
  return call === undefined || typeof call === 'function' ? undefined : 'has a call that is not a function';
}

interface FaultRow {
  readonly name: string;
  readonly fault: string;
}

/**
 * Tells the database which events are for these handlers, so that workers without them leave such events alone. Returns
 * those of them that are disabled.
 */
export async function registerHandlers(database: Database, handlers: Handlers): Promise<FaultRow[]> {
  const { faulty = [] } = handlers;
  if (handlers.size + faulty.length === 0) return [];
  const rows = [
    ...[...handlers.values()].flatMap((handler) =>
      registrationsOf(handler).map((registration) => ({ name: handler.name, ...registration })),
    ),
    ...faulty.flatMap(({ name, fault, registrations }) =>
      registrations.length === 0
        ? [{ name, fault }]
        : registrations.map((registration) => ({ name, fault, ...registration })),
    ),
  ];
  await database.call('webhook.register_handlers', { p_handlers: rows });
  const faults = await database.call<FaultRow>('webhook.list_handler_faults', {});
  const ours = new Set(rows.map(({ name }) => name));
  return faults.filter(({ name }) => ours.has(name));
}

export interface Registering extends Loop {
  /** Resolves once the database knows the handlers. Throws where it cannot be told. */
  registered(): Promise<void>;
}

/** Again and again: the database may be away at the start, and another release may have said otherwise since. */
export function startRegistering(
  database: Database,
  handlers: Handlers,
  log: Log,
  afterwards: () => Promise<void> = () => Promise.resolve(),
): Registering {
  const tellFaults = createFaultTeller(log);
  let first: Promise<void> | undefined;
  const register = async (): Promise<void> => tellFaults(await registerHandlers(database, handlers));
  const registered = (): Promise<void> => {
    first ??= register().catch((error: unknown) => {
      first = undefined;
      throw error;
    });
    return first;
  };
  const loop = startLoop('registering handlers', REGISTER_MS, log, async () => {
    await (first === undefined ? registered() : register());
    await afterwards();
  });
  return { stop: loop.stop, registered };
}

/** Tells the log of each disabled handler, once for each fault. */
export function createFaultTeller(log: Log): (faults: readonly FaultRow[]) => void {
  const told = new Set<string>();
  return (faults) => {
    for (const { name, fault } of faults) {
      if (told.has(`${name} ${fault}`)) continue;
      told.add(`${name} ${fault}`);
      log.error(DISABLED, { handler: name, fault });
    }
  };
}

interface MissingRow {
  readonly name: string;
  readonly events: number;
  readonly oldest_due_sec: number;
}

/** A worker leaves events to the workers that have their handler. If none has it, they wait for ever: this warns of them. */
export async function warnOfMissingHandlers(
  database: Database,
  handlers: Pick<Handlers, 'has'>,
  log: Log,
): Promise<void> {
  const rows = await database.call<MissingRow>('webhook.missing_handlers', { p_sec: MISSING_SEC });
  for (const { name, events, oldest_due_sec } of rows) {
    if (handlers.has(name)) continue;
    const details = { handler: name, events, oldest_due_sec: Math.round(oldest_due_sec) };
    log.warn('events wait for a handler that no worker serves', details);
  }
}
