// The doors' ports on top of Postgres: which SQL function each one calls.

import type { ClaimOutcome, ClaimPorts, ClaimRecord } from '#core/claim.ts';
import type { PoolPorts, PoolStatus } from '#core/pool.ts';
import type { Database } from '../db/database.ts';

export type DatabasePorts = Pick<
  ClaimPorts,
  'claimBatch' | 'getClaim' | 'releaseClaim' | 'releaseAsOperator'
> &
  Pick<PoolPorts, 'poolStatus'>;

/**
 * `lane` is the one connection that claims; `aside` are those for pools that are stuck; `rest` serves everything that must not
 * wait behind a batch.
 */
export function createDatabasePorts(lane: Database, aside: Database, rest: Database): DatabasePorts {
  return {
    claimBatch: (requests, isAside) =>
      (isAside ? aside : lane).call<ClaimOutcome>('public.claim_batch', {
        p_pool_ids: requests.map((request) => request.poolId),
        p_user_ids: requests.map((request) => request.userId),
        p_request_ids: requests.map((request) => request.requestId),
        p_verified: requests.map((request) => request.verified),
        p_rebuild: isAside,
        p_proofs: JSON.stringify(requests.map((request) => request.proof)),
      }),
    getClaim: async (claimId, secretHash) =>
      (
        await rest.call<ClaimRecord>('public.get_claim', {
          p_claim_id: claimId,
          p_secret_hash: bytes(secretHash),
        })
      )[0],
    releaseClaim: async (claimId, userId, secretHash) =>
      (
        await rest.call<ClaimRecord>('public.release_own_claim', {
          p_claim_id: claimId,
          p_user_id: userId,
          p_reason: 'released by the buyer',
          p_secret_hash: bytes(secretHash),
        })
      )[0],
    releaseAsOperator: async (claimId, actor) =>
      (
        await rest.call<ClaimRecord>('public.release_claim_as_operator', {
          p_claim_id: claimId,
          p_actor: actor,
        })
      )[0],
    poolStatus: async (poolId) =>
      (await rest.call<PoolStatus>('public.pool_status', { p_pool_id: poolId }))[0],
  };
}

function bytes(hex: string | null): Uint8Array | null {
  return hex === null ? null : Buffer.from(hex, 'hex');
}
