// The doors' ports on top of the cells: which SQL function each one calls, and in which cell.

import type { ClaimOutcome, ClaimPorts, ClaimRecord, ClaimRequest } from '#core/claim.ts';
import type { PoolPorts, PoolStatus } from '#core/pool.ts';
import type { ServerCell } from './cells.ts';
import type { Fleet } from './fleet.ts';

export type DatabasePorts = Pick<
  ClaimPorts,
  'claimBatch' | 'cellOf' | 'onMissing' | 'getClaim' | 'releaseClaim' | 'releaseAsOperator'
> &
  Pick<PoolPorts, 'poolStatus'>;

export function createDatabasePorts(fleet: Fleet<ServerCell>): DatabasePorts {
  const onClaim = (claimId: string, functionName: string, args: Record<string, unknown>) =>
    fleet.onClaim(
      claimId,
      async ({ call }) => (await call<ClaimRecord>(functionName, { p_claim_id: claimId, ...args }))[0],
    );
  return {
    ...(fleet.isOne
      ? { onMissing: async (poolId: string) => void (await fleet.cellOf(poolId, fleet.only.name)) }
      : { cellOf: (poolId: string, notIn?: string) => nameOf(fleet.cellOf(poolId, notIn)) }),
    claimBatch: async (requests, isAside, cell) => {
      const { aside, lane, wake } = fleet.isOne ? fleet.only : fleet.named(cell);
      const outcomes = await (isAside ? aside : lane).call<ClaimOutcome>('public.claim_batch', {
        p_pool_ids: requests.map((request) => request.poolId),
        p_user_ids: requests.map((request) => request.userId),
        p_request_ids: requests.map((request) => request.requestId),
        p_verified: requests.map((request) => request.verified),
        p_rebuild: isAside,
        p_proofs: JSON.stringify(requests.map((request) => request.proof)),
        ...(requests.some(isTraced) && {
          p_traceparents: requests.map(({ traceparent = null }) => traceparent),
        }),
        ...(requests.some(isGroup) && { p_quantities: requests.map(({ quantity = 1 }) => quantity) }),
      });
      // A claim that is held has no message yet: the courier wakes the workers when it was paid.
      if (outcomes.some(({ outcome, state }) => outcome === 'claimed' && state !== 'held')) wake();
      return outcomes;
    },
    getClaim: (claimId, secretHash) => onClaim(claimId, 'get_claim', { p_secret_hash: bytes(secretHash) }),
    releaseClaim: (claimId, userId, secretHash) =>
      onClaim(claimId, 'release_own_claim', {
        p_user_id: userId,
        p_reason: 'released by the buyer',
        p_secret_hash: bytes(secretHash),
      }),
    releaseAsOperator: (claimId, actor) => onClaim(claimId, 'release_claim_as_operator', { p_actor: actor }),
    poolStatus: (poolId) =>
      fleet.onPool(
        poolId,
        async ({ call }) => (await call<PoolStatus>('pool_status', { p_pool_id: poolId }))[0],
        (status) => status === undefined,
      ),
  };
}

/** A batch without one leaves the argument out, and costs what it did before there were any. */
function isGroup({ quantity }: ClaimRequest): boolean {
  return quantity !== undefined && quantity > 1;
}

/** As above. */
function isTraced({ traceparent }: ClaimRequest): boolean {
  return traceparent !== undefined;
}

function nameOf(
  cell: ReturnType<Fleet<ServerCell>['cellOf']>,
): string | undefined | Promise<string | undefined> {
  return cell instanceof Promise ? cell.then((found) => found?.name) : cell?.name;
}

function bytes(hex: string | null): Uint8Array | null {
  return hex === null ? null : Buffer.from(hex, 'hex');
}
