// Bearer tokens on Node: the project's own JWTs, told from operators' keys by their form.

import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import type { AuthPorts } from '#core/auth.ts';
import { createVerifyToken, MIN_JWT_SECRET_CHARS } from '#core/tokens.ts';

export { MIN_JWT_SECRET_CHARS };

export interface TokenOptions {
  jwtSecret: string;
  jwksUrl?: string;
}

/**
 * Text of this form is never looked up as an operator's key, and nothing else can be a token. So the expired tokens of a crowd
 * never count as guessed keys, and buyers get through even while another client at their address guesses keys.
 */
export const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

export function createTokenPorts(
  { jwtSecret, jwksUrl }: TokenOptions,
  operators: Pick<AuthPorts, 'findOperator'>,
): AuthPorts {
  return {
    findOperator: async (token, request) =>
      JWT.test(token) ? undefined : operators.findOperator(token, request),
    verifyToken: createVerifyToken(
      { jwtSecret, jwksUrl },
      { createRemoteJWKSet, decodeProtectedHeader, jwtVerify },
    ),
  };
}
