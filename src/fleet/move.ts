// Moves a pool from one cell to another. Each step is one transaction of one cell and can be repeated, so a mover that was killed
// is run again and goes on: pack (the source gives the pool up), carry (the target gathers parcels), unpack (the target takes it
// up: here the directory turns), sent (the source forgets the parcels).

import type { CallFunction } from '#core/call_function.ts';

export interface Move {
  readonly poolId: string;
  readonly source: CallFunction;
  readonly target: CallFunction;
  /** The name of the target. */
  readonly to: string;
  readonly actor: string;
  readonly reason: string | null;
  /** Told before each step; tests kill the mover there. */
  readonly onStep?: (step: 'pack' | 'carry' | 'unpack' | 'sent') => void;
  /** Told of each parcel that the target has. */
  readonly onParcels?: (there: number, all: number) => void;
}

interface Parcel {
  readonly seq: number;
  readonly kind: string;
  readonly body: string;
}

/** A parcel has up to 1000 rows, about half a megabyte. */
const PARCELS_AT_ONCE = 8;

export async function movePool(move: Move): Promise<{ version: number; parcels: number }> {
  const { poolId, source, target, actor, reason, onStep } = move;
  onStep?.('pack');
  const [packed] = await source<{ version: number; parcels: number }>('pool_pack', {
    p_pool_id: poolId,
    p_to: move.to,
    p_actor: actor,
    p_reason: reason,
  });
  if (packed === undefined) throw new Error('pool_pack gave no answer');
  await carry(move, packed);
  onStep?.('unpack');
  await target('pool_unpack', {
    p_pool_id: poolId,
    p_version: packed.version,
    p_parcels: packed.parcels,
    p_actor: actor,
    p_reason: reason,
  });
  onStep?.('sent');
  await source('pool_sent', { p_pool_id: poolId, p_version: packed.version });
  return packed;
}

async function carry(
  { poolId, source, target, onStep, onParcels }: Move,
  { version, parcels }: { version: number; parcels: number },
): Promise<void> {
  const receive = async (some: readonly Parcel[]) => {
    const [row] = await target<{ pool_receive: number | null }>('pool_receive', {
      p_pool_id: poolId,
      p_version: version,
      p_seqs: some.map(({ seq }) => seq),
      p_kinds: some.map(({ kind }) => kind),
      p_bodies: some.map(({ body }) => body),
    });
    return row?.pool_receive ?? null;
  };
  let there = await receive([]);
  while (there !== null && there < parcels) {
    onParcels?.(there, parcels);
    onStep?.('carry');
    const some = await source<Parcel>('pool_parcels', {
      p_pool_id: poolId,
      p_version: version,
      p_after: there,
      p_limit: PARCELS_AT_ONCE,
    });
    if (some.length === 0) throw new Error(`the source has no parcel after ${there} of ${parcels}`);
    there = await receive(some);
  }
  onParcels?.(parcels, parcels);
}
