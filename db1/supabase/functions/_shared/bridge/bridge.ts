// The bridge: carries messages to the ledger, or to a pool's own function or hook, lane by lane. The lease worker takes them
// and keeps their leases; here each pool's messages are decided and finished in fenced statements. Whatever happens between
// take and finish, the lease runs out and the message comes back; every effect on the way is idempotent by the claim's id.

import { type Blame, blameOf } from '../failure.ts';
import { byHalves } from '../halving.ts';
import { type Group, type Lane, LeaseWorker, type Outcomes, type Report } from '../lease_worker.ts';
import { Limiter } from '../limiter.ts';
import { Targets } from '../target.ts';
import { type CommitContext, commitInTurn, commitSet, OBSTACLES } from './commit.ts';
import { Delivery } from './delivery.ts';
import { Gathering } from './gathering.ts';
import { commitByHook, validate } from './hooks.ts';
import { labelOfTarget, tellGroup } from './observe.ts';
import type { BridgePorts, Finish, LaneOfPool, TakenMessage } from './ports.ts';
import { Refusals } from './refusals.ts';
import {
  FUNCTION_CALLS_AT_ONCE,
  hasHook,
  isLedgerAlone,
  isSet,
  LEDGER,
  limitOf,
  targetsOf,
} from './targets.ts';
import { endSpent } from './tickets.ts';
import { Trouble } from './trouble.ts';

export interface BridgeOptions {
  /** Messages of one take and one commit to the ledger. */
  readonly batchSize: number;
  /** Batches on their way to the ledger at once; 1 where left out. */
  readonly batches?: number;
  /** The lease is this long or the pool's visibility_timeout_sec, and is extended while the bridge works. */
  readonly leaseSec: number;
  /** This process' part of a limit that it shares with others; all of it where left out. */
  share?(limit: number): number;
  /** How long it rests when there is nothing to carry and no notice wakes it; the lease worker's own where left out. */
  readonly idleMs?: number;
}

/** A third of the lease: two heartbeats may fail before it runs out. */
const HEARTBEATS_PER_LEASE = 3;
/**
 * Ten thousand claims a second gather to five hundred messages. A buyer sees a ticket a twentieth of a second later; a message that
 * finds the worker idle leaves at once.
 */
const GATHER_MS = 50;
/** msg_id holds the lane above this bit (docs/decisions/0019-lanes.md). */
const LANE_SIZE = 2 ** 40;
/** A finish that meets a lock is tried so often: with the pauses and the wait for the lock itself, for half of a lease. */
const FINISH_TRIES = 20;
const FINISH_PAUSE_MS = 100;
/** Finishes that another session keeps up, for all pools together: the rest of the connections is the others'. */
const STUCK_FINISHES_AT_ONCE = 2;

/** Said by the database, or by PostgREST about the JSON it got. */
const REFUSED_DATA: ReadonlySet<Blame> = new Set<Blame>(['data', 'unread', 'unserved']);
const UNREADABLE_REASON = 'the reason could not be stored';

export class Bridge {
  readonly #ports: BridgePorts;
  readonly #options: BridgeOptions;
  readonly #targets: Targets;
  readonly #refusals = new Refusals();
  /** By commit function. */
  readonly #turns = new Map<string, Limiter>();
  readonly #stuckFinishes = new Limiter(STUCK_FINISHES_AT_ONCE);
  readonly #worker: LeaseWorker<TakenMessage>;

  constructor(ports: BridgePorts, options: BridgeOptions) {
    const { intake, log, metrics, now } = ports;
    const { batchSize, batches = 1, leaseSec, share, idleMs } = options;
    this.#ports = ports;
    this.#options = options;
    this.#targets = new Targets({
      now,
      limitOf: (target) => limitOf(target, batchSize * batches, share),
      onChange: (target, isDown) =>
        metrics.count('sluice_bridge_breaker_open', { target: labelOfTarget(target) }, isDown ? 1 : -1),
      onOutage: (target, why) => ports.onOutage?.(labelOfTarget(target), why),
    });
    this.#worker = new LeaseWorker(
      {
        name: 'bridge',
        lanes: () => this.#lanes(),
        take: (wants) =>
          intake.take(
            wants.map(({ lane, wanted }) => ({ lane: Number(lane), wanted })),
            leaseSec,
          ),
        takeSuspect: (lanes) => intake.takeSuspect(lanes.map(Number), leaseSec),
        laneOf: ({ msg_id }) => Math.floor(msg_id / LANE_SIZE),
        groupOf: ({ message }) => String((message as { pool_id?: unknown } | null)?.pool_id),
        extend: (messages) => intake.extend(messages, leaseSec),
        heartbeatMs: (leaseSec * 1000) / HEARTBEATS_PER_LEASE,
        ...(idleMs !== undefined && { idleMs }),
        gatherMs: GATHER_MS,
        work: (group, signal) => this.#carry(group, signal),
      },
      { targets: this.#targets, now, log },
    );
  }

  /** One take, and the end of all that it took. Aborting the signal hands back what is not decided. */
  step(signal: AbortSignal): Promise<Report> {
    return this.#worker.step(signal);
  }

  /** Carries until nothing is ready any more. Throws when DB1 cannot be read. */
  drain(signal: AbortSignal): Promise<Report> {
    return this.#worker.drain(signal);
  }

  /** Carries until the signal aborts, and then finishes or hands back what it holds. */
  run(signal: AbortSignal, onGroup?: (outcomes: Outcomes) => void): Promise<void> {
    return this.#worker.run(signal, onGroup);
  }

  /** There are new messages. */
  wake(): void {
    this.#worker.wake();
  }

  #turnsOf(functionName: string): Limiter {
    let turns = this.#turns.get(functionName);
    if (turns === undefined) {
      turns = new Limiter(this.#options.share?.(FUNCTION_CALLS_AT_ONCE) ?? FUNCTION_CALLS_AT_ONCE);
      this.#turns.set(functionName, turns);
    }
    return turns;
  }

  async #lanes(): Promise<Lane[]> {
    this.#refusals.tell(this.#ports.log, this.#ports.now());
    const targets = new Map<number, Set<string>>();
    for (const row of await this.#ports.intake.lanes()) addTargets(targets, row);
    return [...targets].map(([id, needed]) => {
      const others = [...needed].filter((name) => name !== LEDGER);
      // A delivery that waits for a hook or a function takes up their room; the ledger's it takes only for a moment.
      const occupies = others.length > 0 ? others : [LEDGER];
      return { id, targets: [...needed], occupies, most: this.#options.batchSize };
    });
  }

  /** Decides and finishes the messages of one pool. */
  async #carry(group: Group<TakenMessage>, signal: AbortSignal): Promise<Outcomes> {
    const startedMs = this.#ports.now();
    const deliveries = group.items.map((message) => new Delivery(message));
    const outcomes: Outcomes = {};
    const finished = new Set<Delivery>();
    const finish = async (members: readonly Delivery[]): Promise<void> => {
      for (const delivery of members) finished.add(delivery);
      await this.#finish(members, group, startedMs, outcomes, signal);
    };
    const trouble = new Trouble();
    const context: CommitContext = {
      ...this.#ports,
      signal,
      trouble,
      breakerOf: (target) => this.#targets.of(target).breaker,
    };
    await this.#configure(deliveries);
    await endSpent(
      deliveries.filter((delivery) => delivery.isOpen && delivery.isSpent),
      context,
    );
    const able = this.#inOrder(deliveries.filter((delivery) => delivery.isOpen));
    const [first] = able;
    if (first !== undefined && isSet(first.config)) await commitSet(able, context);
    else await carryEach(able, context, finish, (functionName) => this.#turnsOf(functionName));
    trouble.settle();
    // A delivery that is still open was not begun before the signal: every try, whatever came of it, has ended its delivery.
    for (const delivery of able) if (delivery.isOpen) delivery.end('untried', 'handed back');
    const rest = deliveries.filter((delivery) => !finished.has(delivery));
    if (rest.length > 0) await finish(rest);
    return outcomes;
  }

  /**
   * While a target is suspect, messages that were delivered least are tried first, and equals in random order: a message that
   * always fails, at the head of the lane, would trip the breaker each time before another could show that the target works.
   */
  #inOrder(deliveries: Delivery[]): Delivery[] {
    if (!this.#targets.isAnySuspect) return deliveries;
    return deliveries
      .map((delivery) => ({ delivery, place: delivery.readCt + this.#ports.random() }))
      .sort((one, other) => one.place - other.place)
      .map(({ delivery }) => delivery);
  }

  /** Gives each delivery its pool's configuration, and ends those that have no business here. */
  async #configure(deliveries: Delivery[]): Promise<void> {
    const open = deliveries.filter((delivery) => delivery.isOpen);
    const [first] = open;
    if (first === undefined) return;
    const [config] = await this.#ports.intake.config([first.payload.pool_id]);
    for (const delivery of open) delivery.enter(config);
    if (config !== undefined && hasHook(config)) await this.#enterFirst(open);
  }

  /** Only hooks are told whether a claim is the first of its slot. */
  async #enterFirst(deliveries: readonly Delivery[]): Promise<void> {
    const claims = deliveries.filter(({ isOpen, payload }) => isOpen && payload.claim_id != null);
    if (claims.length === 0) return;
    const firsts = await this.#ports.intake.firstClaims(claims.map(({ identity }) => identity));
    for (const delivery of claims) delivery.enterFirst(firsts.get(delivery.identity.toLowerCase()));
  }

  async #finish(
    deliveries: readonly Delivery[],
    group: Group<TakenMessage>,
    startedMs: number,
    outcomes: Outcomes,
    signal: AbortSignal,
  ): Promise<void> {
    const finishes = deliveries.map((delivery) => delivery.toFinish(this.#ports.random));
    const became = await group.finish(
      deliveries.map(({ message }) => message),
      () => this.#finishAll(finishes, signal),
    );
    for (const delivery of deliveries) {
      const outcome = became.get(delivery.msgId) ?? 'lost_lease';
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      delivery.report(this.#ports.log, outcome);
      if (outcome === 'refused') this.#refusals.add(delivery.payload.pool_id, delivery.reason);
    }
    this.#refusals.tell(this.#ports.log, this.#ports.now());
    tellGroup(deliveries, became, startedMs, this.#ports);
  }

  /**
   * By halves where a message cannot be finished with the others: another session holds its rows, or the database refuses its
   * reason, which is all that a finish holds of foreign words. A worker that stops does not wait for the other session: the
   * leases run out, and the next worker finishes them.
   */
  async #finishAll(finishes: readonly Finish[], signal: AbortSignal): Promise<Map<number, string>> {
    const { intake, log } = this.#ports;
    const became = new Map<number, string>();
    const stuck: Finish[] = [];
    let isStuck = false;
    const finish = async (members: readonly Finish[]): Promise<void> => {
      const call = () => intake.finish(members);
      for (const [msgId, outcome] of await (isStuck ? this.#stuckFinishes.run(call) : call()))
        became.set(msgId, outcome);
    };
    await byHalves(finishes, {
      work: finish,
      mayBeOneMembers(error) {
        const isObstacle = OBSTACLES.has(blameOf(error));
        isStuck ||= isObstacle;
        return isObstacle ? !signal.aborted : REFUSED_DATA.has(blameOf(error));
      },
      fail: async (members, error) => {
        const [first] = members;
        if (first === undefined || members.length > 1) throw error;
        log.error('a finish was refused', { msg_id: first.msg_id, cause: error });
        if (OBSTACLES.has(blameOf(error))) stuck.push(first);
        else await finish([nameless(first, error)]);
      },
    });
    if (stuck.length > 0) await this.#finishLater(() => finish(stuck), signal);
    return became;
  }

  /** Under the lease, again and again: a delivery that is not finished counts as a worker that was lost. */
  async #finishLater(finish: () => Promise<void>, signal: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries++) {
      await new Promise((resolve) => setTimeout(resolve, FINISH_PAUSE_MS * tries));
      try {
        return await finish();
      } catch (error) {
        if (tries === FINISH_TRIES || signal.aborted || !OBSTACLES.has(blameOf(error))) throw error;
      }
    }
  }
}

function nameless(finish: Finish, error: unknown): Finish {
  if (finish.reason === null || !REFUSED_DATA.has(blameOf(error))) throw error;
  return { ...finish, reason: UNREADABLE_REASON };
}

function addTargets(targets: Map<number, Set<string>>, row: LaneOfPool): void {
  const needed = targets.get(row.lane) ?? new Set();
  for (const target of targetsOf(row)) needed.add(target);
  targets.set(row.lane, needed);
}

/** Each by itself, and finished when it is done; a failure that may be its target's waits for the others' ends. */
async function carryEach(
  deliveries: readonly Delivery[],
  context: CommitContext,
  finish: (deliveries: readonly Delivery[]) => Promise<void>,
  turnsOf: (functionName: string) => Limiter,
): Promise<void> {
  const commits = new Gathering<Delivery>((members) => commitSet(members, context));
  const finishes = new Gathering(finish);
  const carry = async (delivery: Delivery): Promise<void> => {
    const { config } = delivery;
    const isOpen = () => delivery.isOpen && !context.signal.aborted;
    if (isOpen() && config.validation_webhook_url !== null && !delivery.isValidated)
      await validate(delivery, context);
    if (isOpen()) {
      if (isLedgerAlone(config)) await commits.add(delivery);
      else if (config.commit_webhook_url !== null) await commitByHook(delivery, context);
      else await commitInTurn(delivery, context, turnsOf(config.commit_rpc_name));
    }
    if (!delivery.isOpen && !context.trouble.has(delivery)) await finishes.add(delivery);
  };
  const ends = await Promise.allSettled(deliveries.map(carry));
  // All calls have come to their end when this throws: none goes on for a group that has failed.
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
