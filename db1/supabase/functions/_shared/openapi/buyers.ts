// The doors of buyers and of orchestrators, described.

import { CLAIM_BODY, SECRET } from '../claim_body.ts';
import { MAX_ID_CHARS } from '../given_id.ts';
import type { AnswerSchema, Descriptions } from './document.ts';
import { COUNT_OR_NULL, FLAG, shape, TEXT, TEXT_OR_NULL } from './shapes.ts';

const COUNT = { type: 'integer', minimum: 0 } as const;

const CLAIM = {
  claim_id: TEXT,
  resource_id: { ...TEXT, description: 'The slot.' },
  pool_id: TEXT,
  user_id: TEXT,
  request_id: TEXT_OR_NULL,
  status: {
    type: 'string',
    pattern: '^(held|queued|validated|committed|dead_letter|released|expired|refused|discarded|voided)$',
    description:
      'held: it waits for its payment. committed: it is a ticket. voided: the ticket was taken back.',
  },
  claimed_at: TEXT,
  hold_until: TEXT_OR_NULL,
} as const;

const GROUP_CLAIM = {
  claim_id: TEXT,
  resource_id: TEXT,
  label: { ...TEXT_OR_NULL, description: 'What the seat is called.' },
} as const;

const TICKET_URL = {
  ...TEXT,
  description:
    'Of a ticket, where the server has SLUICE_TICKET_SECRET. The holder of the link holds the ticket.',
} as const;

/** Of several slots, or of a pool that is paid for. */
const MADE = {
  order: shape({ order_id: TEXT, seats: COUNT }),
  claims: { type: 'array', items: shape(GROUP_CLAIM) },
} as const;

const CLAIM_IN_FULL = {
  ...CLAIM,
  label: { ...TEXT_OR_NULL, description: 'What the seat is called.' },
  ended_at: TEXT_OR_NULL,
  end_reason: TEXT_OR_NULL,
  ahead: {
    ...COUNT_OR_NULL,
    description:
      'About how many claims, of all pools, become tickets before this one; null: not on the queue.',
  },
  ending: {
    ...FLAG,
    description:
      'It ends as soon as the ledger knows and holds its slot until then, or it turns out to be a ticket.',
  },
  ticket_url: TICKET_URL,
  order: shape({
    order_id: TEXT,
    status: {
      ...TEXT_OR_NULL,
      description:
        'held, paying, paid, expired, released, voided, refund_due or refunded; null: nothing is paid for it.',
    },
    seats: COUNT,
    amount: {
      ...COUNT_OR_NULL,
      description: 'In minor units of the currency; null: nothing is paid for it.',
    },
    currency: TEXT_OR_NULL,
    unit_price: COUNT_OR_NULL,
    hold_until: TEXT_OR_NULL,
    claims: {
      type: 'array',
      items: shape({ ...GROUP_CLAIM, state: TEXT, ticket_url: TICKET_URL }, ['ticket_url']),
    },
  }),
} as const;

const POOL = {
  status: { type: 'string', pattern: '^(open|not_open|closed|sold_out)$' },
  capacity: COUNT,
  available: COUNT,
  opens_at: TEXT_OR_NULL,
} as const;

export const BUYER_SCHEMAS: { readonly [name: string]: AnswerSchema } = {
  MadeClaim: shape({ ...CLAIM, ...MADE }, ['order', 'claims']),
  Claim: shape(CLAIM_IN_FULL, ['ticket_url', 'order']),
  SeenClaim: shape(
    CLAIM_IN_FULL,
    Object.keys(CLAIM_IN_FULL).filter((name) => name !== 'claim_id' && name !== 'status'),
  ),
  Pool: shape({
    pool_id: TEXT,
    ...POOL,
    closes_at: TEXT_OR_NULL,
    max_per_user: COUNT_OR_NULL,
    hold_sec: COUNT_OR_NULL,
    require_auth: FLAG,
    allow_guests: { ...FLAG, description: 'With require_auth: anonymous sign-ins are enough.' },
    max_per_address: COUNT_OR_NULL,
    challenge: { ...FLAG, description: 'A claim needs the solution of a challenge.' },
    max_quantity: { ...COUNT, description: 'The most slots that one request may take.' },
    confirm_by: { ...TEXT, description: 'auto, or payment: a claim is a ticket once it is paid.' },
    price: { ...COUNT_OR_NULL, description: 'Of one slot, in minor units of the currency.' },
    currency: TEXT_OR_NULL,
    details: {
      type: ['object', 'null'],
      description: 'What buyers read, a PoolDetails; null where nothing was ever set.',
    },
  }),
  PoolDetails: shape({
    title: TEXT_OR_NULL,
    starts_at: TEXT_OR_NULL,
    time_zone: { ...TEXT_OR_NULL, description: 'An IANA name: starts_at is told in it. Null is UTC.' },
    place: TEXT_OR_NULL,
    picture_url: TEXT_OR_NULL,
    text: TEXT_OR_NULL,
  }),
  PoolNews: shape({
    status: TEXT_OR_NULL,
    available: COUNT_OR_NULL,
    capacity: COUNT_OR_NULL,
    opens_at: TEXT_OR_NULL,
    now: { ...TEXT, description: "The server's clock." },
  }),
  Checkout: shape({
    url: { ...TEXT, description: 'Where the buyer pays.' },
    hold_until: { ...TEXT, description: 'Until when the slots are held for the payment.' },
    amount: { ...COUNT, description: 'For all slots, in minor units of the currency.' },
    currency: TEXT,
  }),
  Status: shape({ status: TEXT }),
};

const TRACEPARENT = {
  traceparent: {
    description:
      "Of W3C Trace Context: the claim's spans, and the calls to the pool's hooks, are of this trace. One that is not valid is ignored.",
    schema: { type: 'string' },
  },
} as const;
const CLAIM_SECRET = {
  'X-Claim-Secret': { description: 'The secret that an unverified claim was made with.', schema: SECRET },
};

const MADE_CLAIM = { $ref: '#/components/schemas/MadeClaim' };
const CLAIM_ANSWER = { $ref: '#/components/schemas/Claim' };
const POOL_ID = 'The pool, percent-encoded where it holds more than letters, digits and . _ ~ : @ -';

export const BUYER_DESCRIPTIONS: Descriptions = {
  'POST /v1/pools/:pool/claims': {
    tag: 'claims',
    summary: 'Take one slot of the pool, or several at once',
    description:
      'Always send a request_id: after a 503 or a lost connection the same request again gives the answer, and one slot at most.',
    auth: 'token',
    parameter: POOL_ID,
    headers: {
      'Idempotency-Key': {
        description: 'The same as request_id. Where both are sent they must be equal.',
        schema: {
          type: 'string',
          minLength: 1,
          maxLength: MAX_ID_CHARS,
          pattern: '^[\\x21-\\x7e]+$',
        },
      },
      ...TRACEPARENT,
    },
    body: CLAIM_BODY,
    answers: {
      200: { description: 'The claim that this request_id made before.', schema: MADE_CLAIM },
      201: {
        description: 'Claimed. Of several slots the first, with all of them in claims.',
        schema: MADE_CLAIM,
      },
    },
    errors: [
      'rate_limited',
      'sold_out',
      'not_enough',
      'quantity_refused',
      'secret_required',
      'limit',
      'address_limit',
      'closed',
      'guests_refused',
      'challenge_required',
      'challenge_used',
      'claim_ended',
      'unknown_pool',
      'not_yours',
      'overloaded',
      'wrong_isolation',
    ],
  },
  'GET /v1/claims/:claim': {
    tag: 'claims',
    summary: 'Look at a claim',
    description:
      'An unverified claim that was made without a secret shows only claim_id and status. Of claims that are not its own the caller learns nothing.',
    auth: 'token',
    parameter: 'The claim_id.',
    headers: CLAIM_SECRET,
    answers: {
      200: { description: 'The claim.', schema: { $ref: '#/components/schemas/SeenClaim' } },
    },
    errors: ['unknown_claim', 'invalid_input'],
  },
  'DELETE /v1/claims/:claim': {
    tag: 'claims',
    summary: 'Give the slot back',
    description:
      'A second call gives the same answer. An operator or a service may release any claim, and the audit log says who.',
    auth: 'token',
    parameter: 'The claim_id.',
    headers: CLAIM_SECRET,
    answers: {
      200: { description: 'The claim, ended.', schema: CLAIM_ANSWER },
      202: {
        description: 'The claim, ending: a worker has it, and the ledger is told first.',
        schema: CLAIM_ANSWER,
      },
    },
    errors: [
      'unknown_claim',
      'invalid_input',
      'in_flight',
      'already_committed',
      'dead_letter',
      'not_yours',
      'wrong_isolation',
    ],
  },
  'POST /v1/claims/:claim/checkout': {
    tag: 'claims',
    summary: 'Pay for the claim',
    description:
      'For a pool with confirm_by payment: the page of Stripe where the buyer pays for all slots of the request. There is one at a time: a second call gives the same address.',
    auth: 'token',
    parameter: 'The claim_id.',
    headers: CLAIM_SECRET,
    answers: {
      200: {
        description: 'The page that was made before.',
        schema: { $ref: '#/components/schemas/Checkout' },
      },
      201: { description: 'A new page.', schema: { $ref: '#/components/schemas/Checkout' } },
    },
    errors: [
      'rate_limited',
      'unknown_claim',
      'invalid_input',
      'not_yours',
      'hold_over',
      'paid',
      'not_for_payment',
      'payment_unavailable',
      'wrong_isolation',
    ],
  },
  'GET /v1/pools/:pool': {
    tag: 'pools',
    summary: 'Look at a pool; up to a second old',
    auth: 'open',
    parameter: POOL_ID,
    answers: { 200: { description: 'The pool.', schema: { $ref: '#/components/schemas/Pool' } } },
    errors: ['unknown_pool'],
  },
  'GET /v1/pools/:pool/live': {
    tag: 'pools',
    summary: 'Follow a pool',
    description: 'Server-sent events: `event: pool`, whose data is a PoolNews, whenever something changes.',
    auth: 'open',
    parameter: POOL_ID,
    answers: {
      200: {
        description: 'The stream.',
        type: 'text/event-stream',
        schema: { $ref: '#/components/schemas/PoolNews' },
      },
    },
    errors: ['unknown_pool', 'overloaded', 'rate_limited'],
  },
  'GET /v1/pools/:pool/challenge': {
    tag: 'pools',
    summary: 'Get a challenge for a claim in this pool',
    description:
      "Never the same twice, and good for one claim within five minutes. Null where the pool asks for none. ALTCHA's proof of work, unless the operator has a verifier of their own.",
    auth: 'open',
    parameter: POOL_ID,
    answers: {
      200: {
        description: 'The challenge.',
        schema: { type: ['object', 'null'], description: 'What the verifier issues.' },
      },
    },
    errors: ['unknown_pool', 'auth_unavailable'],
  },
  'GET /v1/login': {
    tag: 'pools',
    summary: 'Where do people sign in?',
    description:
      'A page adds redirect_to, its own address, and people come back with a session in the fragment.',
    auth: 'open',
    answers: { 200: { description: 'The address, or null.', schema: shape({ login_url: TEXT_OR_NULL }) } },
  },
  'GET /healthz': {
    tag: 'health',
    summary: 'Is the process alive?',
    auth: 'open',
    answers: { 200: { description: 'It is.', schema: { $ref: '#/components/schemas/Status' } } },
  },
  'GET /readyz': {
    tag: 'health',
    summary: 'Should it get traffic?',
    auth: 'open',
    answers: {
      200: { description: 'Both databases answer.', schema: { $ref: '#/components/schemas/Status' } },
    },
  },
  'GET /openapi.json': {
    tag: 'health',
    summary: 'This description',
    auth: 'open',
    answers: {
      200: { description: 'OpenAPI 3.1.', schema: { type: 'object', description: 'The document.' } },
    },
  },
};
