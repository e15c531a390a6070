// What each of our sessions begins with: told to the server at login, or to each transaction where a pooler stands in between.

import type pg from 'pg';
import { sessionSettings } from './ack.ts';
import { isPooled } from './pooler.ts';

export interface Session {
  readonly isPooled: boolean;
  /** For the connection. */
  readonly login: { readonly options?: string };
  /** Begins a transaction. */
  readonly begin: string;
}

/** `limits` are further settings of the server, such as timeouts. */
export function sessionWith(limits: Readonly<Record<string, string | number>> = {}): Session {
  const settings = Object.entries({ ...sessionSettings(), ...limits });
  if (!isPooled()) {
    const options = settings.map(([name, value]) => `-c ${name}=${value}`).join(' ');
    return { isPooled: false, login: { options }, begin: 'begin' };
  }
  // In one message: a transaction costs one more round trip for its beginning and one for its end, and no more.
  const local = settings.map(([name, value]) => `set local ${name} = '${value}'`);
  return { isPooled: true, login: {}, begin: ['begin', ...local].join('; ') };
}

/** As this session may send it: a server behind a pooler knows no statement by its name. */
export function asSent({ isPooled }: Session, query: pg.QueryConfig): pg.QueryConfig {
  if (!isPooled) return query;
  const { name: _, ...unnamed } = query;
  return unnamed;
}
