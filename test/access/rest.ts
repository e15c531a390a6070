// What a caller of PostgREST sees, and the list of everything there is to call.

import assert from 'node:assert/strict';
import type { TestDatabase } from '../support/databases.ts';
import type { TestPostgrest } from '../support/postgrest.ts';
import { openSession } from '../support/sessions.ts';

export type RestAnswer = {
  status: number;
  code: string | undefined;
  body: unknown;
  /** Content-Range, with the count that was asked for. */
  range: string | null;
};

export type RestCall = {
  method?: string;
  path: string;
  body?: unknown;
  /** None: the caller is anon. */
  token?: string | undefined;
  headers?: Record<string, string>;
};

export type Callable = { name: string; argument_names: string[] };
export type Table = {
  name: string;
  /** One that takes a value; an identity column would refuse before the rights are asked. */
  column: string;
};

export async function callRest(
  rest: TestPostgrest,
  { method = 'GET', path, body, token, headers }: RestCall,
): Promise<RestAnswer> {
  const response = await fetch(`${rest.url}/${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(token && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const parsed = text === '' ? undefined : JSON.parse(text);
  return {
    status: response.status,
    code: response.ok ? undefined : parsed?.code,
    body: parsed,
    range: response.headers.get('content-range'),
  };
}

/** Calls a function with nothing but nulls: enough to learn whether the caller may. */
export function callFunction(
  rest: TestPostgrest,
  { name, argument_names }: Callable,
  token?: string,
): Promise<RestAnswer> {
  const body = Object.fromEntries(argument_names.map((argument) => [argument, null]));
  return callRest(rest, { method: 'POST', path: `rpc/${name}`, body, token });
}

const VERBS = { select: 'GET', insert: 'POST', update: 'PATCH', delete: 'DELETE' } as const;
export type Verb = keyof typeof VERBS;
export const ALL_VERBS = Object.keys(VERBS) as Verb[];

/** Tries a verb on a table in a way that touches no row. */
export function tryTable(rest: TestPostgrest, table: Table, verb: Verb, token?: string): Promise<RestAnswer> {
  const nothing = `${table.column}=is.null`;
  return callRest(rest, {
    method: VERBS[verb],
    path: verb === 'insert' ? table.name : `${table.name}?${nothing}`,
    token,
    ...(verb === 'insert' && { body: [{ [table.column]: null }] }),
    ...(verb === 'update' && { body: { [table.column]: null } }),
  });
}

/** Refused for want of rights, or as unknown; never for another reason. */
export function assertRefused(answer: RestAnswer, what: string): void {
  const told = `${what}: ${answer.status} ${JSON.stringify(answer.body)}`;
  assert([401, 403, 404].includes(answer.status), told);
  assert(['42501', 'PGRST202'].includes(answer.code ?? ''), told);
}

export const isRefused = (answer: RestAnswer): boolean =>
  answer.code === '42501' || answer.code === 'PGRST202';

/** Everything in the schema that PostgREST exposes, whichever role may use it. Trigger functions cannot be called. */
export async function everythingExposed(
  database: TestDatabase,
): Promise<{ functions: Callable[]; tables: Table[] }> {
  const session = await openSession(database.url);
  try {
    const functions = await session.rows<Callable>(
      `select p.proname as name, coalesce((
         select array_agg(a.name order by a.place)
         from unnest(p.proargnames) with ordinality a (name, place)
         where coalesce(p.proargmodes[a.place], 'i') in ('i', 'b')
       ), '{}') as argument_names
       from pg_proc p
       where p.pronamespace = 'public'::regnamespace and p.prorettype <> 'trigger'::regtype
       order by 1`,
    );
    const tables = await session.rows<Table>(
      `select c.relname as name, (
         select a.attname from pg_attribute a
         where a.attrelid = c.oid and a.attnum > 0 and a.attidentity = '' order by a.attnum limit 1
       ) as column
       from pg_class c
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v', 'm', 'p') order by 1`,
    );
    return { functions, tables };
  } finally {
    await session.close();
  }
}
