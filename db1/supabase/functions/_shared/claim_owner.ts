// Whose claim it is. A verified claim belongs to its user, and an unverified one to the holder of its secret; for other callers
// neither exists. An unverified claim without a secret belongs to no caller: its id is enough to learn its status, and for nothing
// else.

import { type AuthPorts, type Caller, identify } from './auth.ts';
import type { ClaimRecord } from './claim.ts';
import { HttpError } from './errors.ts';
import { SERVICE, UUID } from './operator.ts';
import { checked } from './query.ts';
import type { HttpRequest } from './router.ts';

export interface OwnerPorts extends AuthPorts {
  /**
   * Throws where the buyer's address has claimed too often; a promise where several processes count together. Services and operators
   * are not asked: they claim for many.
   */
  admit?(request: HttpRequest, slots: number): Promise<void> | undefined;
  getClaim(claimId: string, secretHash: string | null): Promise<ClaimRecord | undefined>;
  /** SHA-256, in hex. */
  hash(text: string): string | Promise<string>;
}

export interface OwnClaim {
  readonly claim: ClaimRecord;
  readonly secretHash: string | null;
  readonly isBuyer: boolean;
  /** For the audit log, where it is not a buyer. */
  readonly actor: string;
}

/** Where a buyer shows the secret of a claim that it reads or releases: a path or a query would end up in logs. */
const SECRET_HEADER = 'x-claim-secret';

/** The claim that the request names, and who asks; throws where it is not the caller's own. */
export async function findOwn(ports: OwnerPorts, request: HttpRequest, claimId: string): Promise<OwnClaim> {
  const caller = await identify(ports, request);
  const isBuyer = !actsForAll(caller);
  if (isBuyer) await ports.admit?.(request, 1);
  const { claim, isOwn, secretHash } = await findSeen(ports, caller, request, claimId);
  if (!isOwn)
    throw new HttpError('not_yours', 'It was made without a secret: only an operator can release it.');
  return { claim, secretHash, isBuyer, actor: actorOf(caller) };
}

/** The claim, and whether it is the caller's own; throws where it is another's. */
export async function findSeen(
  { getClaim, hash }: Pick<OwnerPorts, 'getClaim' | 'hash'>,
  caller: Caller,
  { headers }: HttpRequest,
  claimId: string,
): Promise<{ claim: ClaimRecord; isOwn: boolean; secretHash: string | null }> {
  const secret = headers[SECRET_HEADER];
  const secretHash = typeof secret === 'string' ? await hash(secret) : null;
  const claim = await getClaim(checked(UUID, claimId, 'The claim id'), secretHash);
  if (claim === undefined) throw new HttpError('unknown_claim');
  if (actsForAll(caller)) return { claim, isOwn: true, secretHash };
  const { verified, user_id, secret_matches } = claim;
  const isOwn = verified ? caller.role === 'user' && caller.userId === user_id : secret_matches === true;
  if (!isOwn && (verified || secret_matches === false)) throw new HttpError('unknown_claim');
  return { claim, isOwn, secretHash };
}

export function actsForAll(caller: Caller): boolean {
  return caller.role === 'service' || caller.role === 'operator';
}

function actorOf(caller: Caller): string {
  return caller.role === 'operator' ? caller.name : SERVICE;
}
