// Every way a door can say no, once. A SQLSTATE, an HTTP status and a code are three views of one row of this table;
// nothing else in the code knows which belongs to which.

export interface ErrorKind {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  /** True where sending the same request again, unchanged, can succeed. Answers then carry Retry-After. */
  readonly retryable: boolean;
  readonly http: number;
  /** The SQLSTATE our own SQL functions raise for it, where they do. */
  readonly sqlstate?: string;
}

function kind<Code extends string>(
  code: Code,
  http: number,
  message: string,
  hint: string,
  more: { retryable?: boolean; sqlstate?: string } = {},
): ErrorKind & { readonly code: Code } {
  return { retryable: false, ...more, code, http, message, hint };
}

const KINDS = [
  kind('invalid_input', 422, 'The request is not valid.', 'Compare the request with docs/api.md.', {
    sqlstate: 'SL001',
  }),
  kind('unknown_pool', 404, 'There is no such pool.', 'Check the pool id in the path.', {
    sqlstate: 'SL002',
  }),
  kind('closed', 409, 'The pool is not open.', 'GET the pool to see when it opens and closes.', {
    sqlstate: 'SL003',
  }),
  kind(
    'limit',
    409,
    'This user holds as many slots as the pool allows.',
    'Release a claim before claiming again.',
    {
      sqlstate: 'SL004',
    },
  ),
  kind(
    'auth_required',
    401,
    'This needs a valid token.',
    'Send "Authorization: Bearer <token>" with a token that has not expired.',
    {
      sqlstate: 'SL005',
    },
  ),
  kind('not_yours', 403, 'This belongs to another user.', 'Use the token of the user it belongs to.', {
    sqlstate: 'SL006',
  }),
  kind(
    'request_conflict',
    409,
    'This request_id was used by another user.',
    'Use a new request_id for each new request.',
    {
      sqlstate: 'SL007',
    },
  ),
  kind('unknown_claim', 404, 'There is no such claim.', 'Check the claim id and the token.', {
    sqlstate: 'SL008',
  }),
  kind('in_flight', 409, 'The claim is being carried to the ledger.', 'Try again in a moment.', {
    sqlstate: 'SL009',
    retryable: true,
  }),
  kind('already_committed', 409, 'The claim is already a ticket.', 'A ticket cannot be released.', {
    sqlstate: 'SL010',
  }),
  kind(
    'busy',
    503,
    'Too many requests want the same slots.',
    'Try again in a moment, with the same request_id.',
    {
      sqlstate: 'SL011',
      retryable: true,
    },
  ),
  kind(
    'claim_ended',
    409,
    'The claim of this request_id has ended.',
    'Its slot may be sold again; use a new request_id.',
    {
      sqlstate: 'SL012',
    },
  ),
  kind('dead_letter', 409, 'The claim waits in the dead letters.', 'An operator replays or discards it.', {
    sqlstate: 'SL013',
  }),
  kind('ticket_conflict', 409, 'The slot has a ticket of another claim.', 'An operator has to look at it.', {
    sqlstate: 'SL020',
  }),
  kind(
    'permanent_failure',
    422,
    'The event cannot take effect.',
    'Its error says why; retrying will not help.',
    {
      sqlstate: 'SL030',
    },
  ),
  kind('unknown_endpoint', 404, 'There is no such webhook endpoint.', 'Check the last part of the path.', {
    sqlstate: 'SL031',
  }),
  kind('endpoint_exists', 409, 'An endpoint of this name exists.', 'Change it, or choose another name.', {
    sqlstate: 'SL032',
  }),
  kind('lost_lease', 409, 'Somebody else works on this event now.', 'What you did with it does not count.', {
    sqlstate: 'SL033',
  }),
  kind('bad_signature', 401, 'The signature was refused.', 'Compare the secret on both sides.'),
  kind('handshake_refused', 403, 'The handshake was refused.', 'Compare the verify token on both sides.'),
  kind(
    'processing_failed',
    500,
    'The event is recorded, but could not take effect yet.',
    'Deliver it again after Retry-After seconds.',
    { retryable: true },
  ),
  kind(
    'event_conflict',
    409,
    'This event_id was recorded with another content.',
    'Use a new event_id for each new event.',
  ),
  kind('sold_out', 409, 'The pool is sold out.', 'A slot may come back when somebody releases one.'),
  kind('invalid_json', 400, 'The body is not acceptable JSON.', 'Send one UTF-8 JSON object.'),
  kind('bad_request', 400, 'This is not a valid HTTP request.', 'Check the request line and the headers.'),
  kind('not_found', 404, 'There is nothing at this path.', 'See docs/api.md for the paths.'),
  kind(
    'method_not_allowed',
    405,
    'This path does not take that method.',
    'The Allow header lists the methods.',
  ),
  kind(
    'timeout',
    408,
    'The request took too long to arrive.',
    'Send the headers and the body without pauses.',
  ),
  kind('too_large', 413, 'The body is too large.', 'Send a smaller body.'),
  kind(
    'unsupported_media_type',
    415,
    'The body must be plain application/json.',
    'Send Content-Type: application/json and no Content-Encoding.',
  ),
  kind('headers_too_large', 431, 'The headers are too large.', 'Send fewer or shorter headers.'),
  kind(
    'csrf_refused',
    403,
    'This change did not come from the console.',
    'Send x-sluice-csrf: 1 from the same host, or the key as a Bearer token.',
  ),
  kind('pool_exists', 409, 'There is a pool of this name.', 'Change it, or choose another name.', {
    sqlstate: 'SL014',
  }),
  kind('too_many_attempts', 429, 'Too many wrong keys.', 'Try again after Retry-After seconds.', {
    retryable: true,
  }),
  kind(
    'too_many_requests',
    429,
    'More requests are under way than this server takes.',
    'Try again after Retry-After seconds.',
    {
      retryable: true,
    },
  ),
  kind('internal', 500, 'Something went wrong here.', 'Report the request_id.'),
  kind(
    'overloaded',
    503,
    'More requests are waiting than can be answered soon.',
    'Try again after Retry-After seconds.',
    {
      retryable: true,
    },
  ),
  kind('shutting_down', 503, 'The server is stopping.', 'Try again after Retry-After seconds.', {
    retryable: true,
  }),
  kind(
    'database_unavailable',
    503,
    'The database cannot be reached.',
    'Try again after Retry-After seconds, with the same request_id.',
    {
      retryable: true,
    },
  ),
  kind(
    'auth_unavailable',
    503,
    'Tokens cannot be checked right now.',
    'Try again after Retry-After seconds.',
    {
      retryable: true,
    },
  ),
] as const;

export type ErrorCode = (typeof KINDS)[number]['code'];

export const ERROR_KINDS: Readonly<Record<ErrorCode, ErrorKind>> = Object.fromEntries(
  KINDS.map((entry) => [entry.code, entry]),
) as Record<ErrorCode, ErrorKind>;

const CODE_OF_SQLSTATE: ReadonlyMap<string, ErrorCode> = new Map(
  KINDS.flatMap((entry: ErrorKind) =>
    entry.sqlstate ? [[entry.sqlstate, entry.code as ErrorCode] as const] : [],
  ),
);

/** A refusal with a known reason. `hint` replaces the table's hint and is sent to the caller, so it holds no secret. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly kind: ErrorKind;
  readonly hint: string;

  constructor(code: ErrorCode, hint?: string, cause?: unknown) {
    super(ERROR_KINDS[code].message, cause === undefined ? undefined : { cause });
    this.kind = ERROR_KINDS[code];
    this.hint = hint ?? this.kind.hint;
  }
}

// The database serves nobody, whoever asks and for what: 08 no connection, 53 out of resources (too many connections), 57P
// shutdown or starting up, 25006 a failed-over primary that is read-only now; then the socket errors of the runtimes.
const UNAVAILABLE_SQLSTATE = /^(08...|53...|57P..|25006)$/;
// A login that is refused, and no such database. A statement may say the same of what it was asked: then it is an ERROR.
const LOGIN_SQLSTATE = /^(28...|3D000)$/;
// It is there, and its disk fails. Perhaps for one of a set only, so that a door does not take it for away; but never for
// what was asked.
const DISK_SQLSTATE = /^58...$/;
// Whatever its code, it has ended the session and not a statement: poolers refuse a login with XX000.
const SESSION_SEVERITY: ReadonlySet<unknown> = new Set(['FATAL', 'PANIC']);
const UNAVAILABLE_SOCKET: ReadonlySet<string> = new Set(
  'ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ETIMEDOUT ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH ENOENT'.split(
    ' ',
  ),
);
// Serialisation failure, deadlock, lock not available, statement timeout: a retry can help.
const BUSY_SQLSTATE: ReadonlySet<string> = new Set(['40001', '40P01', '55P03', '57014']);

/** The SQLSTATE, or the runtime's name for what went wrong; empty where there is neither. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  // A refused connection to a name with several addresses arrives as one AggregateError.
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

function isUnavailable(error: unknown): boolean {
  const code = codeOf(error);
  const severity = (error as { severity?: unknown } | null | undefined)?.severity;
  if (UNAVAILABLE_SQLSTATE.test(code) || SESSION_SEVERITY.has(severity)) return true;
  return LOGIN_SQLSTATE.test(code) && severity !== 'ERROR';
}

/** True for what a database says that is never the fault of what was asked. Sockets are not meant: they may be anybody's. */
export function isOutage(error: unknown): boolean {
  return isUnavailable(error) || DISK_SQLSTATE.test(codeOf(error));
}

/** Turns whatever was thrown into a refusal. What is not recognised becomes `internal`; its text stays in `cause`. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  const code = codeOf(error);
  const own = CODE_OF_SQLSTATE.get(code);
  if (own) return new HttpError(own, undefined, error);
  if (isUnavailable(error) || UNAVAILABLE_SOCKET.has(code)) {
    return new HttpError('database_unavailable', undefined, error);
  }
  if (BUSY_SQLSTATE.has(code)) return new HttpError('busy', undefined, error);
  return new HttpError('internal', undefined, error);
}
