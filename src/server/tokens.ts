// Bearer tokens on Node: the project's own JWTs (HS256 with its secret, or its published keys) and the operator's admin key.

import { createHash, timingSafeEqual } from 'node:crypto';
import { createRemoteJWKSet, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import type { AuthPorts, TokenClaims } from '#core/auth.ts';
import { DoorError } from '#core/errors.ts';

export interface TokenOptions {
  adminKey: string;
  jwtSecret: string;
  jwksUrl?: string;
}

// Each key is used with its own algorithms only: a public key must never serve as an HMAC secret.
const SECRET_ALGORITHMS = ['HS256'];
const PUBLISHED_ALGORITHMS = ['RS256', 'ES256'];

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

export function createTokenPorts({ adminKey, jwtSecret, jwksUrl }: TokenOptions): AuthPorts {
  if (adminKey === '' || jwtSecret === '')
    throw new Error('the admin key and the JWT secret must not be empty');
  // Hashed first: equal lengths, so the comparison says nothing about the key's length either.
  const adminHash = sha256(adminKey);
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
      throw new DoorError('auth_unavailable', undefined, error);
    }
  }

  return {
    isAdminKey: (token) => timingSafeEqual(sha256(token), adminHash),
    async verifyToken(token): Promise<TokenClaims> {
      try {
        const { role, sub } = await verify(token);
        return { role, sub };
      } catch (error) {
        if (error instanceof DoorError) throw error;
        throw new DoorError('auth_required', undefined, error);
      }
    },
  };
}

/** Throws for what is no token at all. */
function algorithmOf(token: string): string {
  return decodeProtectedHeader(token).alg ?? '';
}

/** False where the published keys could not be fetched: then nobody knows whether the token is good. */
function isTokensFault(error: unknown): boolean {
  if (error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid) return false;
  return error instanceof errors.JOSEError && error.code !== 'ERR_JOSE_GENERIC';
}
