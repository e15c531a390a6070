// Issues: failures that are alike, of all databases as one list. An issue is replayed whole, with a plan first, or resolved by hand.

import type { CallFunction } from '../call_function.ts';
import { inTime } from '../deadline.ts';
import { HttpError } from '../errors.ts';
import { canWait } from '../failure.ts';
import { operatorOf, REASON, UUID } from '../operator.ts';
import type { Log } from '../ports.ts';
import { checked, readQuery } from '../query.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';

/** Dead letters of claims and deliveries of the inbox are in DB1, events and questions of the outbox in DB2. */
export const ISSUE_KINDS = ['claim', 'delivery', 'event', 'question'] as const;

/** A row of public.issue_list. */
export interface Issue {
  readonly id: string;
  readonly kind: (typeof ISSUE_KINDS)[number];
  /** A claim's pool, an event's handler, the endpoint or site of a delivery, the tenant of a question; null where there is none. */
  readonly lane: string | null;
  readonly type: string;
  /** The shape of the error. As a filter of events it finds those of the issue. */
  readonly error: string | null;
  readonly state: 'open' | 'reopened' | 'resolved';
  /** How many there are now. */
  readonly failures: number;
  readonly dead_letters: number;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  /** The newest: a msg_id, our id of an event, or the id of a question. */
  readonly example_id: string;
  /** Kept when the example has gone round again. */
  readonly example_error: string | null;
  readonly opened_at: string;
  readonly openings: number;
  readonly resolved_at: string | null;
  /** Null where nothing is left of it. */
  readonly resolved_by: string | null;
}

/** What became of one failure of an issue. */
export interface IssueResult {
  readonly id: string;
  readonly outcome: string;
}

export interface IssuePorts {
  /** One for each cell; the only one has no name. */
  readonly intakes: readonly { readonly name?: string; readonly call: CallFunction }[];
  readonly db2: CallFunction;
  readonly log: Log;
}

/** One replay is one transaction that holds the lock of each failure: bounded, so that it stays short. */
const MAX_FAILURES = 1_000;
const DEFAULT_LIMIT = 100;
/** A look at all that has failed takes a while where that is a lot. */
const PATIENCE_MS = 10_000;
const MAX_TEXT_CHARS = 200;

const WORD = { type: 'string', minLength: 1, maxLength: MAX_TEXT_CHARS } as const satisfies Schema;

export const ISSUE_QUERY = {
  type: 'object',
  properties: {
    kind: { type: 'string', pattern: `^(${ISSUE_KINDS.join('|')})$` },
    lane: { ...WORD, description: 'A pool, a handler, an endpoint, a call site or a tenant.' },
    type: { ...WORD, description: 'a type, or a prefix that ends in *' },
    state: { type: 'string', pattern: '^(open|resolved)$', description: 'open means reopened too' },
    limit: { type: 'integer', minimum: 1, maximum: 1_000 },
  },
  additionalProperties: false,
} as const satisfies Schema;

export const ISSUE_REPLAY_BODY = {
  type: 'object',
  properties: {
    reason: REASON,
    dry_run: { type: 'boolean', description: 'The plan: says what would be done and changes nothing.' },
  },
  additionalProperties: false,
} as const satisfies Schema;

export const ISSUE_RESOLVE_BODY = {
  type: 'object',
  properties: { reason: REASON },
  additionalProperties: false,
} as const satisfies Schema;

interface Place {
  readonly name: string;
  readonly call: CallFunction;
}

interface Looked {
  readonly found: readonly (readonly [place: Place, issue: Issue])[];
  /** The databases that could not be asked. */
  readonly away: readonly string[];
}

export function issueRoutes({ intakes, db2, log }: IssuePorts): Route[] {
  const places: Place[] = [
    ...intakes.map(({ name = 'DB1', call }) => ({ name, call })),
    { name: 'DB2', call: db2 },
  ];
  const path = '/admin/issues';
  return [
    { method: 'GET', path, handle: (request) => list(places, log, request) },
    {
      method: 'GET',
      path: `${path}/:issue`,
      handle: async (_, id) =>
        jsonResponse(200, merged((await find(places, log, id)).map(([, one]) => one))[0]),
    },
    {
      method: 'POST',
      path: `${path}/:issue/resolve`,
      handle: (request, id) => resolve(places, log, request, id),
    },
    {
      method: 'POST',
      path: `${path}/:issue/replay`,
      handle: (request, id) => replay(places, log, request, id),
    },
  ];
}

async function list(places: readonly Place[], log: Log, request: HttpRequest): Promise<HttpResponse> {
  const { limit = DEFAULT_LIMIT, ...filters } = readQuery(request.query, ISSUE_QUERY);
  const { found, away } = await look(places, log, {
    p_kind: filters.kind ?? null,
    p_lane: filters.lane ?? null,
    p_type: filters.type ?? null,
    p_state: filters.state ?? null,
    p_limit: limit,
  });
  const issues = merged(found.map(([, issue]) => issue)).slice(0, limit);
  return jsonResponse(200, { issues, away });
}

async function look(places: readonly Place[], log: Log, args: Record<string, unknown>): Promise<Looked> {
  const away: string[] = [];
  const ask = async (place: Place): Promise<Looked['found']> => {
    try {
      const rows = await inTime(PATIENCE_MS, place.call<Issue>('issue_list', args), late);
      return rows.map((row) => [place, row] as const);
    } catch (cause) {
      if (!canWait(cause)) throw cause;
      log.warn('a database cannot be asked for its issues', { database: place.name, cause });
      away.push(place.name);
      return [];
    }
  };
  return { found: (await Promise.all(places.map(ask))).flat(), away };
}

const late = () => new HttpError('database_unavailable', 'It did not answer in time.');

/** Where the issue is: in one database, or in several cells between which its pool was moved. */
async function find(places: readonly Place[], log: Log, id: string): Promise<Looked['found']> {
  const { found, away } = await look(places, log, { p_id: checked(UUID, id, 'The id') });
  if (found.length > 0) return found;
  if (away.length > 0) throw new HttpError('database_unavailable', `${away.join(', ')} cannot be asked.`);
  throw new HttpError('not_found', 'No issue has this id.');
}

/** Each issue once, those that are open first, of those the ones seen last. */
function merged(issues: readonly Issue[]): Issue[] {
  const byId = new Map<string, Issue>();
  for (const issue of issues) {
    const other = byId.get(issue.id);
    byId.set(issue.id, other === undefined ? issue : both(other, issue));
  }
  const isClosed = ({ state }: Issue) => Number(state === 'resolved');
  return [...byId.values()].sort(
    (a, b) => isClosed(a) - isClosed(b) || (a.last_seen_at < b.last_seen_at ? 1 : -1),
  );
}

/** Of the one that is open and was seen last, with the numbers of both. */
function both(a: Issue, b: Issue): Issue {
  const [main, other] =
    a.state !== 'resolved' && (b.state === 'resolved' || a.last_seen_at >= b.last_seen_at) ? [a, b] : [b, a];
  return {
    ...main,
    failures: a.failures + b.failures,
    dead_letters: a.dead_letters + b.dead_letters,
    first_seen_at: a.first_seen_at < b.first_seen_at ? a.first_seen_at : b.first_seen_at,
    last_seen_at: main.last_seen_at > other.last_seen_at ? main.last_seen_at : other.last_seen_at,
    openings: Math.max(a.openings, b.openings),
  };
}

async function replay(
  places: readonly Place[],
  log: Log,
  request: HttpRequest,
  id: string,
): Promise<HttpResponse> {
  const { reason = null, dry_run = false } = readJson(request, ISSUE_REPLAY_BODY);
  const actor = operatorOf(request);
  const found = await find(places, log, id);
  const results: IssueResult[] = [];
  for (const [{ call }, issue] of found) {
    const rows = await call<{ ref: string; outcome: string }>('issue_replay', {
      p_id: issue.id,
      p_actor: actor,
      p_reason: reason,
      p_dry_run: dry_run,
      p_limit: MAX_FAILURES,
    });
    results.push(...rows.map(({ ref, outcome }) => ({ id: ref, outcome })));
  }
  const failures = found.reduce((sum, [, issue]) => sum + issue.failures, 0);
  return jsonResponse(200, { results, left: Math.max(0, failures - results.length) });
}

async function resolve(
  places: readonly Place[],
  log: Log,
  request: HttpRequest,
  id: string,
): Promise<HttpResponse> {
  const { reason = null } = readJson(request, ISSUE_RESOLVE_BODY);
  const actor = operatorOf(request);
  for (const [{ call }, issue] of await find(places, log, id))
    await call('issue_resolve', { p_id: issue.id, p_actor: actor, p_reason: reason });
  return jsonResponse(200, merged((await find(places, log, id)).map(([, one]) => one))[0]);
}
