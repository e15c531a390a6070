// How claims get to the database of their pool: gathered into batches, one lane for each cell. A cell that is slow or down
// holds up its own claims only.

import type { ClaimOutcome, ClaimPorts, ClaimRequest } from './claim.ts';
import { Coalescer, RETRY } from './coalescer.ts';
import { mayBeOneMembers } from './failure.ts';

export type LanePorts = Pick<ClaimPorts, 'claimBatch' | 'cellOf' | 'metrics' | 'log' | 'now' | 'turn'>;

/** The only cell has no name. */
const ONLY_CELL = '';
const UNKNOWN_POOL: ClaimOutcome = {
  ordinal: 1,
  outcome: 'unknown_pool',
  claim_id: null,
  resource_id: null,
  state: null,
  claimed_at: null,
  hold_until: null,
  group_claims: null,
};

export class ClaimLanes {
  readonly #ports: LanePorts;
  readonly #maxWaiting: number | undefined;
  readonly #lanes = new Map<string, Coalescer<ClaimRequest, ClaimOutcome>>();
  #isClosed = false;

  /** `maxWaiting` is for each cell. */
  constructor(ports: LanePorts, maxWaiting?: number) {
    this.#ports = ports;
    this.#maxWaiting = maxWaiting;
  }

  /** To the cell of its pool; where that has no such pool any more, to the cell that the pool has moved to. */
  submit(request: ClaimRequest): Promise<ClaimOutcome> {
    const { cellOf } = this.#ports;
    return cellOf === undefined ? this.#laneOf(ONLY_CELL).submit(request) : this.#submitTo(cellOf, request);
  }

  async #submitTo(cellOf: NonNullable<LanePorts['cellOf']>, request: ClaimRequest): Promise<ClaimOutcome> {
    const cell = await cellOf(request.poolId);
    if (cell === undefined) return UNKNOWN_POOL;
    const answer = await this.#laneOf(cell).submit(request);
    if (answer.outcome !== 'unknown_pool') return answer;
    const now = await cellOf(request.poolId, cell);
    return now === undefined ? answer : this.#laneOf(now).submit(request);
  }

  /** For shutdown: everything that was accepted gets its answer, nothing new is taken. */
  async drain(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#lanes.values()].map((lane) => lane.drain()));
  }

  #laneOf(cell: string): Coalescer<ClaimRequest, ClaimOutcome> {
    return this.#lanes.get(cell) ?? this.#addLane(cell);
  }

  #addLane(cell: string): Coalescer<ClaimRequest, ClaimOutcome> {
    const { metrics, log, turn } = this.#ports;
    const lane = new Coalescer<ClaimRequest, ClaimOutcome>(
      (requests, isAside) => this.#flush(requests, isAside, cell),
      {
        ...(this.#maxWaiting !== undefined && { maxWaiting: this.#maxWaiting }),
        keyOf: ({ poolId }) => poolId,
        mayBeOneMembers,
        ...(turn && { turn }),
        onStuck: (poolId, isStuck) => {
          metrics.count('sluice_claim_pools_stuck', {}, isStuck ? 1 : -1);
          if (isStuck) log.warn('claims of a pool are stuck and go by themselves', { pool_id: poolId });
          else log.info('claims of a pool go with the others again', { pool_id: poolId });
        },
      },
    );
    this.#lanes.set(cell, lane);
    if (this.#isClosed) void lane.drain();
    return lane;
  }

  async #flush(
    requests: ClaimRequest[],
    isAside: boolean,
    cell: string,
  ): Promise<(ClaimOutcome | typeof RETRY)[]> {
    const startedMs = this.#ports.now();
    const rows = await this.#ports.claimBatch(requests, isAside, cell);
    if (rows.length !== requests.length)
      throw new Error(`${requests.length} claims gave ${rows.length} rows`);
    const answers: (ClaimOutcome | typeof RETRY)[] = new Array(rows.length);
    const tally: Record<string, number> = {};
    for (const row of rows) {
      answers[row.ordinal - 1] = row.outcome === 'busy' ? RETRY : row;
      tally[row.outcome] = (tally[row.outcome] ?? 0) + 1;
    }
    this.#measure(tally, rows.length, startedMs);
    return answers;
  }

  /** Once a batch: counting each claim would be work on the hottest path there is. */
  #measure(tally: Record<string, number>, size: number, startedMs: number): void {
    const { metrics, now } = this.#ports;
    for (const [outcome, count] of Object.entries(tally))
      metrics.count('sluice_claims_total', { outcome }, count);
    metrics.observe('sluice_claim_batch_size', {}, size);
    metrics.observe('sluice_claim_batch_seconds', {}, (now() - startedMs) / 1000);
  }
}
