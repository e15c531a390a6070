// Bearer tokens on Node: the project's own JWTs (HS256 with its secret, or its published keys), told from operators'
// keys by their form.

import { createRemoteJWKSet, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import type { AuthPorts, TokenClaims } from '#core/auth.ts';
import { HttpError } from '#core/errors.ts';

export interface TokenOptions {
  jwtSecret: string;
  jwksUrl?: string;
}

// Each key is used with its own algorithms only: a public key must never serve as an HMAC secret.
const SECRET_ALGORITHMS = ['HS256'];
const PUBLISHED_ALGORITHMS = ['RS256', 'ES256'];
/** HS256 needs a key as long as its hash (RFC 7518, 3.2): a token tells a guesser offline whether a shorter one is right. */
export const MIN_JWT_SECRET_CHARS = 32;

/**
 * Text of this form is never looked up as an operator's key, and nothing else can be a token. So the expired tokens of a crowd
 * never count as guessed keys, and buyers get through even while another client at their address guesses keys.
 */
export const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

export function createTokenPorts(
  { jwtSecret, jwksUrl }: TokenOptions,
  operators: Pick<AuthPorts, 'findOperator'>,
): AuthPorts {
  if (jwtSecret.length < MIN_JWT_SECRET_CHARS)
    throw new Error(`the JWT secret must have at least ${MIN_JWT_SECRET_CHARS} characters`);
  const secret = new TextEncoder().encode(jwtSecret);
  const published = jwksUrl === undefined ? undefined : createRemoteJWKSet(new URL(jwksUrl));

  async function verify(token: string): Promise<JWTPayload> {
    if (published === undefined || !PUBLISHED_ALGORITHMS.includes(algorithmOf(token))) {
      return (await jwtVerify(token, secret, { algorithms: SECRET_ALGORITHMS, requiredClaims: ['exp'] }))
        .payload;
    }
    try {
      return (
        await jwtVerify(token, published, { algorithms: PUBLISHED_ALGORITHMS, requiredClaims: ['exp'] })
      ).payload;
    } catch (error) {
      if (isTokensFault(error)) throw error;
      throw new HttpError('auth_unavailable', undefined, error);
    }
  }

  return {
    findOperator: async (token, request) =>
      JWT.test(token) ? undefined : operators.findOperator(token, request),
    async verifyToken(token): Promise<TokenClaims> {
      try {
        const { role, sub, is_anonymous } = await verify(token);
        return { role, sub, is_anonymous };
      } catch (error) {
        if (error instanceof HttpError) throw error;
        throw new HttpError('auth_required', undefined, error);
      }
    },
  };
}

/** Throws for text that is not a token. */
function algorithmOf(token: string): string {
  return decodeProtectedHeader(token).alg ?? '';
}

/** False if the published keys could not be fetched: then the token may still be valid. */
function isTokensFault(error: unknown): boolean {
  if (error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid) return false;
  return error instanceof errors.JOSEError && error.code !== 'ERR_JOSE_GENERIC';
}
