// The doors of buyers and of orchestrators, described.

import { CLAIM_BODY, SECRET } from '../claim.ts';
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
    description: 'held: it waits for its payment. committed: it is a ticket. voided: it was one.',
  },
  claimed_at: TEXT,
  hold_until: TEXT_OR_NULL,
} as const;

const CLAIM_IN_FULL = {
  ...CLAIM,
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
  label: { ...TEXT_OR_NULL, description: 'What a ticket calls the slot.' },
  order: {
    type: ['object', 'null'],
    description:
      'What it was claimed with: {order_id, status, amount, currency, unit_price, seats, hold_until, claims}; null for a claim alone in a pool without payment. status is held, paying, paid, expired, released, voided, refund_due or refunded, and null in a pool without payment.',
  },
} as const;

const POOL = {
  status: { type: 'string', pattern: '^(open|not_open|closed|sold_out)$' },
  capacity: COUNT,
  available: COUNT,
  opens_at: TEXT_OR_NULL,
} as const;

export const BUYER_SCHEMAS: { readonly [name: string]: AnswerSchema } = {
  Claim: shape(CLAIM_IN_FULL, ['ended_at', 'end_reason', 'ahead', 'ending', 'label', 'order']),
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
    confirm_by: { ...TEXT, description: 'auto, or payment: a claim is a ticket once it was paid for.' },
    price: { ...COUNT_OR_NULL, description: 'Of one slot, in minor units of the currency.' },
    currency: TEXT_OR_NULL,
    max_quantity: { ...COUNT, description: 'How many slots one request may claim.' },
    details: {
      type: ['object', 'null'],
      description: 'What buyers read about it: {title, starts_at, place, picture_url, text}.',
    },
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

const CLAIM_SECRET = {
  'X-Claim-Secret': { description: 'The secret that an unverified claim was made with.', schema: SECRET },
};

const CLAIM_ANSWER = { $ref: '#/components/schemas/Claim' };
const POOL_ID = 'The pool, percent-encoded where it holds more than letters, digits and . _ ~ : @ -';

export const BUYER_DESCRIPTIONS: Descriptions = {
  'POST /v1/pools/:pool/claims': {
    tag: 'claims',
    summary: 'Take one slot of the pool',
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
    },
    body: CLAIM_BODY,
    answers: {
      200: { description: 'The claim that this request_id made before.', schema: CLAIM_ANSWER },
      201: { description: 'Claimed.', schema: CLAIM_ANSWER },
    },
    errors: [
      'rate_limited',
      'sold_out',
      'limit',
      'address_limit',
      'closed',
      'guests_refused',
      'challenge_required',
      'challenge_used',
      'secret_required',
      'quantity_refused',
      'not_enough',
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
      "A second call gives the same answer. An operator or a service gives back anybody's, and the audit log says who.",
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
