// Who is calling. No Authorization header is an anonymous caller; a header that does not check out is refused and never
// treated as anonymous, so that an expired session cannot quietly become a weaker one.

import { HttpError } from './errors.ts';
import { wrongIn } from './given_id.ts';
import { type Operator, requireRole } from './roles.ts';
import type { HttpRequest } from './router.ts';

export interface TokenClaims {
  readonly role: unknown;
  readonly sub: unknown;
  /** True in the token of an anonymous sign-in. */
  readonly is_anonymous: unknown;
}

export interface AuthPorts {
  /**
   * The operator whose key this is; undefined where it is not a key, which is counted unless it has the form of a JWT. Throws a
   * HttpError for a wrong key of a caller that has sent too many of those; a right one always passes.
   */
  findOperator(token: string, request: HttpRequest): Promise<Operator | undefined>;
  /** Checks signature, algorithm and expiry; throws a HttpError where one of them is wrong. */
  verifyToken(token: string): Promise<TokenClaims>;
}

export type Caller =
  | { readonly role: 'anonymous' }
  /** A guest is an anonymous sign-in: the same user each time, but of unknown identity. */
  | { readonly role: 'user'; readonly userId: string; readonly isGuest: boolean }
  /** Our own services (service_role) and operators: both may act for any user. */
  | { readonly role: 'service' }
  | { readonly role: 'operator'; readonly name: string };

const ANONYMOUS: Caller = { role: 'anonymous' };
const BEARER = /^Bearer ([\x21-\x7e]+)$/i;

/** A promise only where a token has to be looked at: nearly every claim comes without one. */
export function identify(ports: AuthPorts, request: HttpRequest): Caller | Promise<Caller> {
  return request.headers.authorization === undefined ? ANONYMOUS : identifyByToken(ports, request);
}

async function identifyByToken(ports: AuthPorts, request: HttpRequest): Promise<Caller> {
  const { authorization } = request.headers;
  const token = typeof authorization === 'string' ? BEARER.exec(authorization)?.[1] : undefined;
  if (token === undefined) throw new HttpError('auth_required');
  const operator = await ports.findOperator(token, request);
  if (operator === undefined) return callerOf(await ports.verifyToken(token));
  requireRole(operator, 'operator');
  return { role: 'operator', name: operator.name };
}

function callerOf({ role, sub, is_anonymous }: TokenClaims): Caller {
  if (role === 'service_role') return { role: 'service' };
  if (role === 'anon') return ANONYMOUS;
  if (role === 'authenticated' && typeof sub === 'string' && wrongIn(sub) === undefined)
    return { role: 'user', userId: sub, isGuest: is_anonymous === true };
  throw new HttpError('auth_required');
}
