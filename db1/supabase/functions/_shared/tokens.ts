// Tokens of users: the project's own JWTs, by HS256 with its secret or by its published keys. The package `jose` comes in: Node and
// the Edge Functions import it from different places.

import type { AuthPorts } from './auth.ts';
import { HttpError } from './errors.ts';

interface VerifyOptions {
  readonly algorithms: string[];
  readonly requiredClaims: string[];
}

/** What we use of the package `jose`. */
export interface Jose {
  jwtVerify(token: string, key: never, options: VerifyOptions): Promise<{ payload: object }>;
  createRemoteJWKSet(url: URL): unknown;
  /** Throws for what is not a token at all. */
  decodeProtectedHeader(token: string): { alg?: string };
}

export interface TokenKeys {
  /** Tokens by HS256 are refused where it is left out. */
  readonly jwtSecret?: string | undefined;
  /** Where the published keys are. */
  readonly jwksUrl?: string | undefined;
}

// Each key is used with its own algorithms only: a public key must never serve as an HMAC secret.
const SECRET_ALGORITHMS = ['HS256'];
const PUBLISHED_ALGORITHMS = ['RS256', 'ES256'];
/** HS256 needs a key as long as its hash (RFC 7518, 3.2): a token tells a guesser offline whether a shorter one is right. */
export const MIN_JWT_SECRET_CHARS = 32;
/** The published keys could not be fetched: whether the token is good is not known. */
const KEYS_AWAY: ReadonlySet<string> = new Set(['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC']);

/** Throws where the secret is too short. */
export function createVerifyToken({ jwtSecret, jwksUrl }: TokenKeys, jose: Jose): AuthPorts['verifyToken'] {
  if (jwtSecret !== undefined && jwtSecret.length < MIN_JWT_SECRET_CHARS)
    throw new Error(`the JWT secret must have at least ${MIN_JWT_SECRET_CHARS} characters`);
  const secret = jwtSecret === undefined ? undefined : new TextEncoder().encode(jwtSecret);
  const published = jwksUrl === undefined ? undefined : jose.createRemoteJWKSet(new URL(jwksUrl));

  async function verify(token: string): Promise<Record<string, unknown>> {
    const isPublished =
      published !== undefined && PUBLISHED_ALGORITHMS.includes(jose.decodeProtectedHeader(token).alg ?? '');
    const key = isPublished ? published : secret;
    if (key === undefined) throw new HttpError('auth_required');
    const algorithms = isPublished ? PUBLISHED_ALGORITHMS : SECRET_ALGORITHMS;
    try {
      const { payload } = await jose.jwtVerify(token, key as never, { algorithms, requiredClaims: ['exp'] });
      return payload as Record<string, unknown>;
    } catch (error) {
      if (!isPublished || isTokensFault(error)) throw error;
      throw new HttpError('auth_unavailable', undefined, error);
    }
  }

  return async (token) => {
    try {
      const { role, sub, is_anonymous } = await verify(token);
      return { role, sub, is_anonymous };
    } catch (error) {
      if (error instanceof HttpError) throw error;
      throw new HttpError('auth_required', undefined, error);
    }
  };
}

/** All errors of `jose` have a code. */
function isTokensFault(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && /^ERR_J(OSE|W[A-Z]+)_/.test(code) && !KEYS_AWAY.has(code);
}
