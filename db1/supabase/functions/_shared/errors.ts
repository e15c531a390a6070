// Every way an HTTP route can say no, once: its code, its status, what it says, and whether the same request can succeed
// later. What a failure of a database or a runtime means, and which of these it becomes, is in failure.ts.

export interface ErrorKind {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  /** True where sending the same request again, unchanged, can succeed. Answers then carry Retry-After. */
  readonly retryable: boolean;
  readonly http: number;
}

const RETRY = 'retry';
type Row = readonly [http: number, message: string, hint: string, retry?: typeof RETRY];

const ROWS = {
  invalid_input: [422, 'The request is not valid.', 'Compare the request with docs/api.md.'],
  unknown_pool: [404, 'This pool does not exist.', 'Check the pool id in the path.'],
  closed: [409, 'The pool is not open.', 'GET the pool to see when it opens and closes.'],
  limit: [409, 'This user holds as many slots as the pool allows.', 'Release a claim before claiming again.'],
  auth_required: [
    401,
    'This needs a valid token.',
    'Send "Authorization: Bearer <token>" with a token that has not expired.',
  ],
  role_refused: [
    403,
    'The role of your key does not allow this.',
    'An admin gives roles: `sluice operators list` shows them.',
  ],
  owner_required: [
    403,
    'The server’s role in the database may not change the operators.',
    'The owner of DB1 grants it (docs/secure.md#operators-in-the-console), or uses `sluice operators` with the owner’s address.',
  ],
  not_yours: [403, 'This belongs to another user.', 'Use the token of the user it belongs to.'],
  request_conflict: [
    409,
    'This request_id was used for another change.',
    'Use a new request_id for each new request.',
  ],
  guests_refused: [
    403,
    'The pool does not sell to anonymous sign-ins.',
    'Sign in with an account, and send its token.',
  ],
  server_required: [
    403,
    'The pool takes claims through its server only.',
    'POST /v1/pools/<pool>/claims: the pool limits addresses or asks for a challenge.',
  ],
  challenge_required: [
    403,
    'The pool asks for a solved challenge.',
    'GET /v1/pools/<pool>/challenge, solve it, and send the solution as "challenge".',
  ],
  challenge_used: [
    409,
    'The solution of this challenge was used for another claim.',
    'GET a new challenge, and solve that.',
  ],
  address_limit: [
    409,
    'The buyers at this address hold as many slots as the pool allows.',
    'Release a claim before claiming again.',
  ],
  unknown_claim: [404, 'This claim was not found.', 'Check the claim id, and the token or the secret.'],
  in_flight: [409, 'The claim is being carried to its target.', 'Try again in a moment.', RETRY],
  already_committed: [409, 'The claim is already a ticket.', 'A ticket cannot be released.'],
  busy: [
    503,
    'Too many requests want the same thing at once.',
    'Send the same request again in a moment: it has no second effect.',
    RETRY,
  ],
  claim_ended: [
    409,
    'The claim of this request_id has ended.',
    'Its slot may be sold again; use a new request_id.',
  ],
  dead_letter: [409, 'The claim waits in the dead letters.', 'An operator replays or discards it.'],
  ticket_conflict: [409, 'The slot has a ticket of another claim.', 'An operator has to look at it.'],
  permanent_failure: [422, 'The event cannot take effect.', 'Its error says why; retrying will not help.'],
  unknown_endpoint: [404, 'This webhook endpoint does not exist.', 'Check the last part of the path.'],
  endpoint_exists: [409, 'An endpoint of this name exists.', 'Change it, or choose another name.'],
  unknown_site: [404, 'This call site does not exist.', 'Check its id.'],
  site_exists: [409, 'A call site of this id exists.', 'Rotate its secrets, or choose another id.'],
  lost_lease: [409, 'Another worker has taken this event over.', 'Your work on it does not count.'],
  bad_signature: [401, 'The signature was refused.', 'Compare the secret on both sides.'],
  handshake_refused: [403, 'The handshake was refused.', 'Compare the verify token on both sides.'],
  processing_failed: [
    500,
    'The event is recorded, but could not take effect yet.',
    'Deliver it again after Retry-After seconds.',
    RETRY,
  ],
  event_conflict: [
    409,
    'This event_id was recorded with another content.',
    'Use a new event_id for each new event.',
  ],
  payment_unavailable: [
    503,
    'The payment provider gives no page to pay on.',
    'Try again after Retry-After seconds: the slot is held until hold_until.',
    RETRY,
  ],
  sold_out: [409, 'The pool is sold out.', 'A slot may come back when a buyer releases one.'],
  not_enough: [409, 'Fewer slots are free than the request is for.', 'Ask for fewer.'],
  quantity_refused: [
    422,
    'The pool sells fewer slots to one request.',
    'GET the pool: max_quantity says how many.',
  ],
  secret_required: [
    401,
    'The pool is paid for: it has to know its buyers again.',
    'Sign in, or send a secret of your own with the claim.',
  ],
  hold_over: [409, 'The hold is over.', 'Claim again.'],
  paid: [409, 'The claim is paid.', 'What was paid for ends by a refund.'],
  not_for_payment: [409, 'The claim is not paid for.', 'Its pool has confirm_by auto.'],
  no_ticket_links: [
    404,
    'Tickets have no links on this server.',
    'An operator sets SLUICE_TICKET_SECRET for the server.',
  ],
  invalid_json: [400, 'The body is not acceptable JSON.', 'Send one UTF-8 JSON object.'],
  bad_request: [400, 'This is not a valid HTTP request.', 'Check the request line and the headers.'],
  not_found: [404, 'There is nothing at this path.', 'See docs/api.md for the paths.'],
  method_not_allowed: [405, 'This path does not take that method.', 'The Allow header lists the methods.'],
  timeout: [408, 'The request took too long to arrive.', 'Send the headers and the body without pauses.'],
  too_large: [413, 'The body is too large.', 'Send a smaller body.'],
  unsupported_media_type: [
    415,
    'The body must be plain application/json.',
    'Send Content-Type: application/json and no Content-Encoding.',
  ],
  headers_too_large: [431, 'The headers are too large.', 'Send fewer or shorter headers.'],
  csrf_refused: [
    403,
    'This change did not come from the console.',
    'Send x-sluice-csrf: 1 from the same host, or the key as a Bearer token.',
  ],
  pool_exists: [409, 'There is a pool of this name.', 'Change it, or choose another name.'],
  pool_moving: [503, 'The pool is being moved.', 'Try again after Retry-After seconds.', RETRY],
  pool_elsewhere: [
    409,
    'The pool lives in another cell.',
    'A pool is never in two cells: move it, or choose another name.',
  ],
  pool_not_at_rest: [
    409,
    'The pool is open, or claims of it are under way.',
    'Close it, and wait until workers have carried its claims.',
  ],
  cell_unavailable: [
    503,
    'A cell that may have this cannot be reached.',
    'Try again after Retry-After seconds, with the same request_id.',
    RETRY,
  ],
  wrong_isolation: [
    500,
    'The database runs this at an isolation level other than read committed.',
    'An operator sets default_transaction_isolation to read committed; `sluice doctor` says where.',
  ],
  too_many_attempts: [429, 'Too many wrong keys.', 'Try again after Retry-After seconds.', RETRY],
  too_many_requests: [
    429,
    'More requests are under way than this server takes.',
    'Try again after Retry-After seconds.',
    RETRY,
  ],
  rate_limited: [429, 'This address sends more than it may.', 'Try again after Retry-After seconds.', RETRY],
  internal: [500, 'Something went wrong here.', 'Report the request_id.'],
  overloaded: [
    503,
    'More requests are waiting than can be answered soon.',
    'Try again after Retry-After seconds.',
    RETRY,
  ],
  shutting_down: [503, 'The server is stopping.', 'Try again after Retry-After seconds.', RETRY],
  database_unavailable: [
    503,
    'The database cannot be reached.',
    'Try again after Retry-After seconds, with the same request_id.',
    RETRY,
  ],
  auth_unavailable: [
    503,
    'Tokens cannot be checked right now.',
    'Try again after Retry-After seconds.',
    RETRY,
  ],
} as const satisfies Readonly<Record<string, Row>>;

export type ErrorCode = keyof typeof ROWS;

export const ERROR_KINDS: Readonly<Record<ErrorCode, ErrorKind>> = Object.fromEntries(
  Object.entries<Row>(ROWS).map(([code, [http, message, hint, retry]]) => [
    code,
    { code, http, message, hint, retryable: retry !== undefined },
  ]),
) as Record<ErrorCode, ErrorKind>;

/** A refusal with a known reason. `hint` replaces the table's hint and is sent to the caller, so it holds no secret. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly kind: ErrorKind;
  readonly hint: string;
  /** Sent beside those of its kind, or instead of them. */
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(code: ErrorCode, hint?: string, cause?: unknown, headers?: Readonly<Record<string, string>>) {
    super(ERROR_KINDS[code].message, cause === undefined ? undefined : { cause });
    this.kind = ERROR_KINDS[code];
    this.hint = hint ?? this.kind.hint;
    this.headers = headers;
  }
}
