// `GET /admin/search`: one question to all databases at once, and what each of them knows by it, grouped by kind. A database that is
// away is named in the answer; the others are shown.

import type { CallFunction } from '../call_function.ts';
import { inTime } from '../deadline.ts';
import { HttpError } from '../errors.ts';
import { canWait } from '../failure.ts';
import type { Log } from '../ports.ts';
import { readQuery } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route } from '../router.ts';
import type { Schema } from '../schema.ts';

/** In the order in which they are shown, unless one of a later kind has exactly this id. */
export const KINDS = [
  'claim',
  'order',
  'ticket',
  'payment',
  'refund',
  'event',
  'call',
  'issue',
  'dead_letter',
  'message',
  'slot',
  'user',
  'pool',
  'endpoint',
  'site',
  'operator',
  'audit',
] as const;
export type Kind = (typeof KINDS)[number];

/** A row of public.search_intake and public.search_ledger. */
export interface Found {
  readonly kind: Kind;
  /** What its page is called by. */
  readonly id: string;
  /** What it leads to, where it has no page of its own; of an event its own id, of an issue its type, of an audit row its subject. */
  readonly ref: string | null;
  readonly pool_id: string | null;
  /** Of an event the tenant, of a call the site, of an issue its lane, of an audit row the actor. */
  readonly user_id: string | null;
  readonly state: string | null;
  readonly at: string | null;
  /** What of it was asked for. */
  readonly why: string;
  /** 1 the intake, 2 the ledger. */
  readonly db: 1 | 2;
  /** Where the intake has several cells. */
  readonly cell?: string;
}

export interface SearchGroup {
  readonly kind: Kind;
  readonly items: readonly Found[];
  /** There are more than are shown. */
  readonly has_more: boolean;
}

export interface SearchAnswer {
  /** As it was understood. */
  readonly q: string;
  readonly groups: readonly SearchGroup[];
  /** The databases that could not be asked. */
  readonly away: readonly string[];
}

export interface SearchPorts {
  /** One for each cell; the only one has no name. */
  readonly intakes: readonly { readonly name?: string; readonly call: CallFunction }[];
  readonly db2: CallFunction;
  readonly log: Log;
}

const DEFAULT_LIMIT = 8;
/** A person waits for the slowest database so long and no longer. */
const PATIENCE_MS = 2_000;
const MAX_CHARS = 500;

export const SEARCH_QUERY = {
  type: 'object',
  properties: {
    q: {
      type: 'string',
      minLength: 1,
      maxLength: MAX_CHARS,
      description:
        'A whole id or its beginning (of a uuid four digits or more); a user, a payment, an event id, a request id, a pool, an order; a seat as its ticket calls it; a part of the type, the lane or the error of an issue.',
    },
    limit: { type: 'integer', minimum: 1, maximum: 100, description: 'Of each kind.' },
  },
  required: ['q'],
  additionalProperties: false,
} as const satisfies Schema;

export function searchRoutes(ports: SearchPorts): Route[] {
  return [{ method: 'GET', path: '/admin/search', handle: (request) => search(ports, request) }];
}

async function search(ports: SearchPorts, request: HttpRequest): Promise<HttpResponse> {
  const { q: given, limit = DEFAULT_LIMIT } = readQuery(request.query, SEARCH_QUERY);
  const q = cleaned(given);
  if (q === '') throw new HttpError('invalid_input', 'q is what to search for.');
  const answers = await Promise.all(asked(ports, q, limit));
  const found = answers.flatMap(({ rows }) => rows);
  return jsonResponse(200, {
    q,
    groups: groupsOf(found, q, limit),
    away: answers.flatMap(({ away }) => away ?? []),
  } satisfies SearchAnswer);
}

/** As people paste it: with the dots that say that an id goes on, with the sign in front of a number, in quotes. */
export function cleaned(given: string): string {
  return given
    .trim()
    .replace(/^["'`]+|["'`]+$/g, '')
    .replace(/(…|\.\.\.)$/, '')
    .replace(/^#(?=\d)/, '')
    .trim();
}

/** How the audit log calls what something was done to, and the credit ledger what a row is about (void:<claim>, back:<payment>:2). */
const SUBJECTS = [
  /^(?:claim|order|ticket|message|dead letter|refund|payment|webhook event|event|call site|call|issue|pool|user|webhook endpoint|endpoint|operator) (.+)$/i,
  /^(?:settle|void|back):(.+?)(?::\d+)?$/,
];

/** What is asked for: the text as it is, and the id that it names. */
export function wordsOf(q: string): readonly string[] {
  return [q, ...SUBJECTS.flatMap((subject) => subject.exec(q)?.[1] ?? [])];
}

interface Asked {
  readonly rows: readonly Found[];
  readonly away?: string;
}

function asked({ intakes, db2, log }: SearchPorts, q: string, limit: number): Promise<Asked>[] {
  const words = wordsOf(q);
  // One more than are shown: whether there are more.
  const p_limit = limit + 1;
  const ask = async (
    name: string,
    call: CallFunction,
    functionName: string,
    more: Pick<Found, 'db' | 'cell'>,
  ): Promise<Asked> => {
    try {
      const answers = words.map((p_q) => call<Omit<Found, 'db'>>(functionName, { p_q, p_limit }));
      const rows = await inTime(PATIENCE_MS, Promise.all(answers), late);
      return { rows: rows.flat().map((row) => ({ ...row, ...more })) };
    } catch (cause) {
      if (!canWait(cause)) throw cause;
      log.warn('a database cannot be asked in a search', { database: name, cause });
      return { rows: [], away: name };
    }
  };
  return [
    ...intakes.map(({ name, call }) =>
      ask(name ?? 'DB1', call, 'search_intake', { db: 1, ...(name !== undefined && { cell: name }) }),
    ),
    ask('DB2', db2, 'search_ledger', { db: 2 }),
  ];
}

const late = () => new HttpError('database_unavailable', 'It did not answer in time.');

/** Each thing once. What has exactly this id comes first, and its kind with it. */
export function groupsOf(found: readonly Found[], q: string, limit: number): SearchGroup[] {
  const isExact = ({ id, ref }: Found) =>
    id === q || ref === q || id.endsWith(`/${q}`) || id === q.toLowerCase();
  const groups = KINDS.map((kind) => {
    const byKey = new Map<string, Found>();
    // The ledger knows more of a payment than the intake, and comes last.
    for (const row of found) if (row.kind === kind) byKey.set(keyOf(row), row);
    const rows = [...byKey.values()].sort((a, b) => Number(isExact(b)) - Number(isExact(a)));
    return { kind, items: rows.slice(0, limit), has_more: rows.length > limit };
  });
  return groups
    .filter(({ items }) => items.length > 0)
    .sort((a, b) => Number(b.items.some(isExact)) - Number(a.items.some(isExact)));
}

/** Each database, and each cell, numbers its own rows of the audit log and its own messages. */
function keyOf({ kind, id, db, cell }: Found): string {
  return kind === 'audit' || kind === 'message' ? `${db} ${cell ?? ''} ${id}` : id;
}
