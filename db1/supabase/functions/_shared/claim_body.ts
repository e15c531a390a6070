// The body of a claim, and who and which request it names.

import type { Caller } from './auth.ts';
import { HttpError } from './errors.ts';
import { MAX_ID_CHARS, wrongIn } from './given_id.ts';
import type { Schema } from './schema.ts';

/** As engine_config has it for every pool; each pool has its own, which is less or the same. */
const MAX_QUANTITY = 10;

/** What fits into a header as well. */
export const SECRET = {
  type: 'string',
  minLength: 16,
  maxLength: 200,
  pattern: '^[\\x21-\\x7e]+$',
} as const satisfies Schema;
/** As long as a token of Turnstile can be. */
const MAX_CHALLENGE_CHARS = 2_048;

export const CLAIM_BODY = {
  type: 'object',
  properties: {
    user_id: {
      type: 'string',
      minLength: 1,
      maxLength: MAX_ID_CHARS,
      description: 'Who the slot is for. May be left out by a signed-in user.',
    },
    request_id: {
      type: 'string',
      minLength: 1,
      maxLength: MAX_ID_CHARS,
      description: 'Makes a retry safe: the same id of the same user in the same pool gives the same claim.',
    },
    secret: {
      ...SECRET,
      description:
        'Made up by the buyer, and kept as a hash: reading, repeating and releasing the claim then needs it. Not used where a token says who asks.',
    },
    quantity: {
      type: 'integer',
      minimum: 1,
      maximum: MAX_QUANTITY,
      description:
        'How many slots, all of them or none; one where left out. The pool has its own max_quantity.',
    },
    challenge: {
      type: 'string',
      minLength: 1,
      maxLength: MAX_CHALLENGE_CHARS,
      description: 'The solution of a challenge of this pool, where it asks for one.',
    },
  },
  additionalProperties: false,
} as const satisfies Schema;

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,200}$/;

export function requestIdOf(
  inBody: string | undefined,
  inHeader: string | string[] | undefined,
): string | null {
  if (inHeader === undefined) return inBody === undefined ? null : checkedId('request_id', inBody);
  if (typeof inHeader !== 'string' || !IDEMPOTENCY_KEY.test(inHeader)) {
    throw new HttpError('invalid_input', 'Idempotency-Key must be 1 to 200 visible ASCII characters.');
  }
  if (inBody !== undefined && inBody !== inHeader) {
    throw new HttpError('invalid_input', 'request_id and Idempotency-Key differ; send one of them.');
  }
  return inHeader;
}

export function userIdOf(caller: Caller, inBody: string | undefined): string {
  if (caller.role === 'user') {
    if (inBody !== undefined && inBody !== caller.userId)
      throw new HttpError('not_yours', 'user_id must be the token\'s "sub".');
    return caller.userId;
  }
  if (inBody === undefined) throw new HttpError('invalid_input', 'user_id is missing.');
  return checkedId('user_id', inBody);
}

function checkedId(name: string, id: string): string {
  const wrong = wrongIn(id);
  if (wrong !== undefined) throw new HttpError('invalid_input', `${name} ${wrong}.`);
  return id;
}
