// Challenges at the door: where a buyer gets one, and what a claim asks of the verifier.

import { inTime } from '#core/deadline.ts';
import { HttpError } from '#core/errors.ts';
import { jsonResponse, type Route, refuse } from '#core/router.ts';
import type { ChallengeVerifier } from './challenge.ts';

export interface ChallengeOptions {
  readonly verifier: ChallengeVerifier;
  /** What the pool asks for: null if it asks for nothing, undefined if the pool does not exist. */
  difficultyOf(poolId: string): Promise<number | null | undefined>;
}

export interface Challenges {
  routes(): Route[];
  /** The verifier's word. Throws a HttpError that can be tried again where it cannot tell, or takes too long. */
  readonly verify: ChallengeVerifier['verify'];
}

/** A verifier that asks another service answers in a fraction of it. A buyer waits no longer. */
const ANSWER_WITHIN_MS = 5_000;
/** As the database counts. */
const MAX_DIFFICULTY = 2_147_483_647;
/** What the database keeps of a solution. */
const ID = /^[\x21-\x7e]{1,200}$/;

export function createChallenges({ verifier, difficultyOf }: ChallengeOptions): Challenges {
  return {
    routes: () => [
      {
        method: 'GET',
        path: '/v1/pools/:pool/challenge',
        async handle(request, poolId) {
          const difficulty = await difficultyOf(poolId);
          if (difficulty === undefined) return refuse('unknown_pool', request.requestId);
          const issue = difficulty === null ? null : await asked(() => verifier.issue(poolId, difficulty));
          return jsonResponse(200, issue);
        },
      },
    ],
    verify: (...given) => asked(async () => checked(await verifier.verify(...given))),
  };
}

function checked(proven: Awaited<ReturnType<ChallengeVerifier['verify']>>): typeof proven {
  if (proven === undefined) return undefined;
  if (typeof proven.id !== 'string' || !ID.test(proven.id))
    throw new Error('the verifier of challenges gave an id that is not 1 to 200 visible ASCII characters');
  if (!Number.isInteger(proven.difficulty) || Math.abs(proven.difficulty) > MAX_DIFFICULTY)
    throw new Error('the verifier of challenges gave a difficulty that is not a whole number of 32 bits');
  return proven;
}

async function asked<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await inTime(ANSWER_WITHIN_MS, ask(), () => new Error('the verifier of challenges is silent'));
  } catch (error) {
    throw new HttpError(
      'auth_unavailable',
      'Challenges cannot be checked right now. Try again after Retry-After seconds.',
      error,
    );
  }
}
