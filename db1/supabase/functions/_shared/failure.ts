// What a failure means, once: whose fault it is, whether a retry can help, and what an HTTP route answers. Routes, bridge,
// events, Edge Functions and the demo ask here; a SQLSTATE stands nowhere else. webhook.verdict is the same table for SQL
// handlers, and a test compares the two.

import { type ErrorCode, HttpError } from './errors.ts';

/**
 * Who is to blame.
 * - `database`: it serves no client, whatever is asked. `disk`: it serves, but its disk fails, perhaps for one row only.
 * - `unreached`: a socket or a name failed, perhaps not a database's. `unanswered`: no database answered (TLS, a proxy).
 * - `collision`: two sessions were in each other's way. `slow`: it took too long and was cancelled.
 * - `missing`, `denied`: no such function, table or schema, no right to it; what was called says it, or something inside it.
 * - `unserved`: PostgREST does not serve what was called.
 * - `broken`: a defect in a statement, in the server or in our own code. It may show for one request only.
 * - `data`, `size`, `constraint`, `unread`: what was sent is refused, and will be again.
 * - `refused`: one of our own functions says no. `permanent`, `later`: a handler's word about its event.
 */
export type Blame =
  | 'database'
  | 'disk'
  | 'unreached'
  | 'unanswered'
  | 'collision'
  | 'slow'
  | 'missing'
  | 'unserved'
  | 'denied'
  | 'broken'
  | 'data'
  | 'size'
  | 'constraint'
  | 'unread'
  | 'refused'
  | 'permanent'
  | 'later'
  | 'other';

export interface Meaning {
  readonly blame: Blame;
  /** What an HTTP route answers. */
  readonly answer: ErrorCode;
}

/** What our own functions refuse. */
const REFUSALS: Readonly<Record<string, ErrorCode>> = {
  SL001: 'invalid_input',
  SL002: 'unknown_pool',
  SL003: 'closed',
  SL004: 'limit',
  SL005: 'auth_required',
  SL006: 'not_yours',
  SL007: 'request_conflict',
  SL008: 'unknown_claim',
  SL009: 'in_flight',
  SL010: 'already_committed',
  SL011: 'busy',
  SL012: 'claim_ended',
  SL013: 'dead_letter',
  SL014: 'pool_exists',
  SL015: 'wrong_isolation',
  SL016: 'guests_refused',
  SL017: 'server_required',
  SL018: 'pool_moving',
  SL019: 'pool_elsewhere',
  SL020: 'ticket_conflict',
  SL021: 'claim_ended',
  SL022: 'pool_not_at_rest',
  SL031: 'unknown_endpoint',
  SL032: 'endpoint_exists',
  SL033: 'lost_lease',
  SL040: 'hold_over',
  SL041: 'paid',
  SL042: 'not_for_payment',
  SL043: 'secret_required',
};

/** Everything else: SQLSTATEs or how they begin, the blame, and the answer where it is not `internal`. */
const STATES: readonly (readonly [states: string, blame: Blame, answer?: ErrorCode])[] = [
  ['SL030', 'permanent', 'permanent_failure'],
  ['SL034', 'later', 'processing_failed'],
  // Raised and caught inside one function, to undo a part of its work. One that escapes is a defect.
  ['SL099', 'broken'],
  ['SL', 'refused'],
  // No connection; out of resources (too many connections); shutting down or starting up; a standby, or a primary that is
  // read-only now; a commit that may not have reached the standbys.
  ['08 53 57P 25006 40003', 'database', 'database_unavailable'],
  ['58', 'disk'],
  // Serialisation failure, deadlock, lock timeout.
  ['40001 40P01 55P03', 'collision', 'busy'],
  ['57014', 'slow', 'busy'],
  ['3F000 42883 42P01', 'missing'],
  // PostgREST's own codes: the schema is not served; the function does not exist.
  ['PGRST106 PGRST202', 'unserved'],
  ['42501', 'denied'],
  ['42 XX PGRST', 'broken'],
  // What PostgREST says about the JSON or the path it got.
  ['PGRST1', 'unread'],
  ['22', 'data'],
  ['54', 'size'],
  ['23', 'constraint'],
];

/** By SQLSTATE, or by how it begins: the longest entry that fits counts. */
export const MEANINGS: ReadonlyMap<string, Meaning> = new Map([
  ...Object.entries(REFUSALS).map(([state, answer]) => [state, means('refused', answer)] as const),
  ...STATES.flatMap(([states, blame, answer]) =>
    states.split(' ').map((state) => [state, means(blame, answer)] as const),
  ),
]);

function means(blame: Blame, answer: ErrorCode = 'internal'): Meaning {
  return { blame, answer };
}

const LONGEST_ENTRY = Math.max(...[...MEANINGS.keys()].map((key) => key.length));
const OTHER = means('other');
const NOT_SERVED = means('database', 'database_unavailable');
const NOT_REACHED = means('unreached', 'database_unavailable');
const NO_ANSWER = means('unanswered');
const DEFECT = means('broken');

/** A login that is refused, and no such database. A statement may say the same of what it was asked: then it is an ERROR. */
const LOGIN = /^(28...|3D000)$/;
/** The system's names (EPIPE) begin with an E, which no SQLSTATE does. */
const SAID_BY_A_DATABASE = /^((?!E)[0-9A-Z]{5}|PGRST.*)$/;
/** Whatever its code, it has ended the session and not a statement: poolers refuse a login with XX000. */
const SESSION_SEVERITY: ReadonlySet<unknown> = new Set(['FATAL', 'PANIC']);
const SOCKET: ReadonlySet<string> = new Set(
  'ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ETIMEDOUT ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH ENOENT'.split(
    ' ',
  ),
);

/** What our own code gives to failures that come without a code, and what it asks for by name. */
export const SQLSTATE = {
  noConnection: '08001',
  connectionRejected: '08004',
  connectionFailure: '08006',
  notPrimary: '25006',
  completionUnknown: '40003',
  tooManyConnections: '53300',
  limitExceeded: '54000',
  invalidInput: 'SL001',
  claimVoided: 'SL021',
  permanentFailure: 'SL030',
  tryLater: 'SL034',
} as const;

/** The SQLSTATE, or the runtime's name for what went wrong; empty where there is neither. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  // A refused connection to a name with several addresses arrives as one AggregateError.
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Whether a database has such a code at all. */
export function isSqlstate(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code);
}

/**
 * The code of a refusal over PostgREST. What stands before the database has no codes, or codes for its own outages: then the
 * HTTP status says what is wrong.
 */
export function codeOfAnswer(code: string, status: number): string {
  if (isSqlstate(code)) return code;
  // A key that is not taken says nothing about the messages: they wait until it is put right.
  if (status === 401) return SQLSTATE.connectionRejected;
  if (status === 429 || status >= 502) return SQLSTATE.connectionFailure;
  if (code.startsWith('PGRST')) return code;
  // Less at once may pass.
  if (status === 413) return SQLSTATE.limitExceeded;
  return status === 403 ? SQLSTATE.connectionRejected : SQLSTATE.connectionFailure;
}

/** True where a database, or PostgREST before it, has answered with this. */
export function isSaidByDatabase(error: unknown): boolean {
  return SAID_BY_A_DATABASE.test(codeOf(error));
}

export function meaningOf(error: unknown): Meaning {
  const code = codeOf(error);
  const severity = (error as { severity?: unknown } | null | undefined)?.severity;
  if (SESSION_SEVERITY.has(severity) || (LOGIN.test(code) && severity !== 'ERROR')) return NOT_SERVED;
  if (SAID_BY_A_DATABASE.test(code)) return entryFor(code) ?? OTHER;
  if (SOCKET.has(code)) return NOT_REACHED;
  // What our own code stumbles over: one request may have brought it about.
  return code === '' && (error instanceof TypeError || error instanceof RangeError) ? DEFECT : NO_ANSWER;
}

function entryFor(code: string): Meaning | undefined {
  for (let length = Math.min(code.length, LONGEST_ENTRY); length > 0; length--) {
    const meaning = MEANINGS.get(code.slice(0, length));
    if (meaning !== undefined) return meaning;
  }
  return undefined;
}

export function blameOf(error: unknown): Blame {
  return meaningOf(error).blame;
}

/** Turns whatever was thrown into a refusal. What is not recognised becomes `internal`; its text stays in `cause`. */
export function toHttpError(error: unknown): HttpError {
  return error instanceof HttpError ? error : new HttpError(meaningOf(error).answer, undefined, error);
}

/**
 * True where the session is gone: no connection, or the server ended it. A statement may raise the same codes, as a function
 * does that calls another database: then the session lives, and the trouble is that function's.
 */
export function hasLostSession(error: unknown): boolean {
  const { blame } = meaningOf(error);
  if (blame === 'unreached' || blame === 'unanswered') return true;
  return blame === 'database' && (error as { severity?: unknown }).severity !== 'ERROR';
}

/**
 * What a standby says to a statement that writes, that reads an unlogged table, or that needs a transaction id. A primary may
 * say the last two as well, so the server has to be asked what it is.
 */
const SAID_BY_STANDBYS: ReadonlySet<string> = new Set(['25006', '0A000', 'XX000']);

export function mayBeSaidByStandby(error: unknown): boolean {
  return SAID_BY_STANDBYS.has(codeOf(error));
}

/** True while the database cannot be asked, for whatever reason. */
export function isUnavailable(error: unknown): boolean {
  return toHttpError(error).kind.code === 'database_unavailable';
}

/**
 * True where the database could not take something now, whatever it was: it may be kept elsewhere and taken later. A refusal, a defect
 * and a server that stops are not.
 */
export function canWait(error: unknown): boolean {
  const { code, http } = toHttpError(error).kind;
  if (http === 503) return code !== 'shutting_down';
  if (error instanceof HttpError) return false;
  const blame = blameOf(error);
  return blame === 'disk' || blame === 'unanswered';
}

/** What the language itself throws. */
const FAULTS_OF_CODE: ReadonlySet<string> = new Set([
  'TypeError',
  'ReferenceError',
  'RangeError',
  'SyntaxError',
]);

/** True for a fault of the code. A fetch that fails throws a TypeError too: the socket's error is its cause. */
export function isFaultOfCode(error: Error): boolean {
  return FAULTS_OF_CODE.has(error.name) && error.cause === undefined;
}

/** True for an obstacle that may be gone a moment later: a lock, a deadlock, a statement that took too long. */
export function mayPass(error: unknown): boolean {
  const blame = blameOf(error);
  return blame === 'collision' || blame === 'slow';
}

/** True for a failure of a set that one member may have caused: its neighbours are tried without it. */
export function mayBeOneMembers(error: unknown): boolean {
  const { blame, answer } = meaningOf(error);
  // One member may wait for a lock that another session holds, and the set with it.
  return blame === 'collision' || blame === 'slow' || answer === 'internal';
}
