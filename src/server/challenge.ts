// A challenge makes a claim cost something, in pools that ask for it. The built-in one is a proof of work, made and checked here
// without a third party; a module of the operator's own may take its place.

import { createHmac } from 'node:crypto';
import { type Challenge, createChallenge, randomInt, type Solution, verifySolution } from 'altcha-lib';
import { deriveKey } from 'altcha-lib/algorithms/sha';
import type { Clock } from '#core/ports.ts';

export interface ChallengeVerifier {
  /** What a buyer of this pool has to solve, sent as JSON. */
  issue(poolId: string, difficulty: number): Promise<unknown>;
  /**
   * The solved challenge, or undefined if the solution is not valid for this pool. All solutions of one challenge have the same
   * `id`, and no other challenge has it: the database takes each once, over all servers. `difficulty` is what was proven; the
   * claim is refused if the pool asks for more. Throws if it cannot tell.
   */
  verify(
    solution: string,
    poolId: string,
    address: string | undefined,
  ): Promise<{ readonly id: string; readonly difficulty: number } | undefined>;
}

/** Long enough for a slow phone, and for a person who reads the page first. The database remembers solutions for longer. */
export const CHALLENGE_LIFETIME_SEC = 300;

/**
 * A number from 1 to `difficulty` is hashed and half of the hash given away. A solver tries numbers until it finds that one, half
 * of them on average. One round of SHA-256 and not a slow hash: checking a solution costs this process two HMACs, and a
 * crowd sends thousands a second.
 */
export function proofOfWork(jwtSecret: string, now: Clock): ChallengeVerifier {
  // Of the project's secret, so that every server knows it; of the pool, so that a solution is good for no other pool.
  const keyOf = (poolId: string, use: string): string =>
    createHmac('sha256', jwtSecret).update(`sluice challenge, ${use}, ${poolId}`).digest('hex');
  const secretsOf = (poolId: string) => ({
    hmacSignatureSecret: keyOf(poolId, 'parameters'),
    hmacKeySignatureSecret: keyOf(poolId, 'solution'),
  });
  return {
    issue: (poolId, difficulty) =>
      createChallenge({
        algorithm: 'SHA-256',
        cost: 1,
        counter: randomInt(difficulty),
        deriveKey,
        data: { difficulty },
        expiresAt: Math.floor(now() / 1_000) + CHALLENGE_LIFETIME_SEC,
        ...secretsOf(poolId),
      }),
    async verify(text, poolId) {
      const sent = readSolution(text);
      if (sent === undefined) return undefined;
      const { challenge, solution } = sent;
      const { verified } = await verifySolution({ challenge, solution, deriveKey, ...secretsOf(poolId) });
      // Signed by us, so these are the parameters that we made.
      return verified
        ? { id: challenge.signature, difficulty: Number(challenge.parameters.data?.difficulty) }
        : undefined;
    },
  };
}

interface Sent {
  readonly challenge: Challenge & { readonly signature: string };
  readonly solution: Solution;
}

/** Base64 of `{challenge, solution}`, as the solvers of ALTCHA write it. The library expects this much to be true. */
function readSolution(text: string): Sent | undefined {
  try {
    const { challenge, solution } = JSON.parse(Buffer.from(text, 'base64').toString());
    const isWhole = typeof challenge.signature === 'string' && typeof challenge.parameters === 'object';
    return isWhole && challenge.parameters !== null ? { challenge, solution } : undefined;
  } catch {
    // Not JSON, or not of this form.
    return undefined;
  }
}
