// The bridge: one step takes a batch under a lease, decides per message, commits to the ledger in sets and finishes the
// batch in one fenced statement. Whatever happens between take and finish, the lease runs out and the message comes back;
// every effect on the way is idempotent by the claim's id.

import { Breaker } from '../breaker.ts';
import { type Blame, blameOf } from '../failure.ts';
import { startHeartbeat } from '../heartbeat.ts';
import { commitToLedger, targetsInLedger } from './commit.ts';
import { Delivery, groupBy } from './delivery.ts';
import { commitByHook, validate } from './hooks.ts';
import { labelOfTarget, tellStep } from './observe.ts';
import type { BridgePorts, Finish, PoolConfig } from './ports.ts';
import { Refusals } from './refusals.ts';
import { endSpent } from './tickets.ts';
import { Trouble } from './trouble.ts';

export interface BridgeOptions {
  readonly batchSize: number;
  /** The lease is this long or the pool's visibility_timeout_sec, and is extended while a step works. */
  readonly leaseSec: number;
}

export interface StepReport {
  /** Messages taken. */
  readonly total: number;
  /** Deliveries by what became of them: a verdict or lost_lease. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** When the first paused target may be tried again; 0 when none is paused. */
  readonly pausedUntilMs: number;
}

/** A third of the lease: two heartbeats may fail before it runs out. */
const HEARTBEATS_PER_LEASE = 3;

/** Said by the database, or by PostgREST about the JSON it got. */
const REFUSED_DATA: ReadonlySet<Blame> = new Set<Blame>(['data', 'unread', 'unserved']);
const UNREADABLE_REASON = 'the reason could not be stored';

export class Bridge {
  readonly #ports: BridgePorts;
  readonly #options: BridgeOptions;
  readonly #breakers = new Map<string, Breaker>();
  readonly #refusals = new Refusals();
  /** Which targets a pool needs, as last seen. */
  readonly #targets = new Map<string, string[]>();

  constructor(ports: BridgePorts, options: BridgeOptions) {
    this.#ports = ports;
    this.#options = options;
  }

  /** Aborting the signal makes a step finish what is decided and hand back the rest. */
  async step(signal: AbortSignal): Promise<StepReport> {
    const { intake } = this.#ports;
    const { batchSize, leaseSec } = this.#options;
    const messages = await intake.take(batchSize, leaseSec, this.#pausedPools());
    if (messages.length === 0) {
      this.#refusals.tell(this.#ports.log, this.#ports.now());
      return { total: 0, outcomes: {}, pausedUntilMs: this.#pausedUntilMs() };
    }
    const startedMs = this.#ports.now();
    const deliveries = messages.map((message) => new Delivery(message));
    const stopHeartbeat = this.#startHeartbeat(deliveries);
    try {
      await this.#decide(deliveries, signal);
    } finally {
      await stopHeartbeat();
    }
    const outcomes = await this.#finish(deliveries, startedMs);
    return { total: messages.length, outcomes, pausedUntilMs: this.#pausedUntilMs() };
  }

  async #decide(deliveries: Delivery[], signal: AbortSignal): Promise<void> {
    await this.#configure(deliveries);
    const able = this.#inOrder(deliveries.filter((delivery) => delivery.isOpen));
    const trouble = new Trouble();
    const breakerOf = (target: string) => this.#breakerOf(target);
    const context = { ...this.#ports, signal, trouble, breakerOf };
    const spent = able.filter((delivery) => delivery.isSpent);
    if (spent.length > 0) await endSpent(spent, context);
    await validate(able, context);
    await this.#meter(able);
    await commitByHook(able, context);
    await commitToLedger(able, context);
    trouble.settle();
    // Whoever is left was not reached before the signal: a try, whatever came of it, has ended its delivery.
    for (const delivery of able) if (delivery.isOpen) delivery.end('untried', 'handed back');
  }

  /**
   * While a target is suspect, whoever was delivered least is tried first, and equals in random order: a message that
   * always fails, at the head of the queue, would trip the breaker each time before anybody could show that the target works.
   */
  #inOrder(deliveries: Delivery[]): Delivery[] {
    if (![...this.#breakers.values()].some((breaker) => breaker.isSuspect)) return deliveries;
    return deliveries
      .map((delivery) => ({ delivery, place: delivery.readCt + this.#ports.random() }))
      .sort((one, other) => one.place - other.place)
      .map(({ delivery }) => delivery);
  }

  /** Gives each delivery its pool's configuration, and ends those that have no business here. */
  async #configure(deliveries: Delivery[]): Promise<void> {
    const poolIds = new Set<string>();
    for (const delivery of deliveries) if (delivery.isOpen) poolIds.add(delivery.payload.pool_id);
    const configs = new Map<string, PoolConfig>();
    if (poolIds.size > 0) {
      for (const config of await this.#ports.intake.config([...poolIds])) configs.set(config.pool_id, config);
      this.#learnTargets(poolIds, configs);
    }
    for (const delivery of deliveries)
      if (delivery.isOpen) delivery.enter(configs.get(delivery.payload.pool_id));
  }

  /** A hook that no pool names any more is nobody's outage: its breaker goes. */
  #learnTargets(poolIds: Iterable<string>, configs: ReadonlyMap<string, PoolConfig>): void {
    for (const poolId of poolIds) {
      const config = configs.get(poolId);
      if (config === undefined) this.#targets.delete(poolId);
      else this.#targets.set(poolId, targetsOf(config));
    }
    const needed = new Set([...this.#targets.values()].flat());
    for (const [target, breaker] of this.#breakers) {
      if (needed.has(target)) continue;
      breaker.retire();
      this.#breakers.delete(target);
    }
  }

  /** A pool with a ceiling commits what it allows now; the rest comes back when it may. */
  async #meter(deliveries: Delivery[]): Promise<void> {
    const metered = groupBy(
      deliveries.filter((delivery) => delivery.isOpen && delivery.config.commit_rate_per_sec !== null),
      (delivery) => delivery.payload.pool_id,
    );
    for (const [poolId, waiting] of metered) {
      const allowed = await this.#ports.intake.allow(poolId, waiting.length);
      for (const [place, delivery] of waiting.slice(allowed).entries()) {
        const rate = delivery.config.commit_rate_per_sec ?? 1;
        delivery.end('untried', 'metered', Math.ceil(((place + 1) / rate) * 1000));
      }
    }
  }

  async #finish(deliveries: Delivery[], startedMs: number): Promise<Record<string, number>> {
    const finishes = deliveries.map((delivery) => delivery.toFinish(this.#ports.random));
    const became = await this.#finishAll(finishes);
    const outcomes: Record<string, number> = {};
    for (const delivery of deliveries) {
      const outcome = became.get(delivery.msgId) ?? 'lost_lease';
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      delivery.report(this.#ports.log, outcome);
      if (outcome === 'refused') this.#refusals.add(delivery.payload.pool_id, delivery.reason);
    }
    this.#refusals.tell(this.#ports.log, this.#ports.now());
    tellStep(deliveries, became, outcomes, startedMs, this.#ports);
    return outcomes;
  }

  /**
   * Reasons are all that a finish holds of other people's words. Where the database refuses them, nobody may suffer for
   * it: what the ledger has is finished alone, and the others without their reasons.
   */
  async #finishAll(finishes: readonly Finish[]): Promise<Map<number, string>> {
    const { intake, log } = this.#ports;
    try {
      return await intake.finish(finishes);
    } catch (error) {
      const others = finishes.filter(({ verdict }) => verdict !== 'committed');
      if (!REFUSED_DATA.has(blameOf(error)) || others.length === 0) throw error;
      log.error('a finish was refused', { messages: finishes.length, cause: error });
      const committed = finishes.filter(({ verdict }) => verdict === 'committed');
      const became = committed.length > 0 ? await intake.finish(committed) : [];
      const nameless = others.map((finish) => ({ ...finish, reason: finish.reason && UNREADABLE_REASON }));
      return new Map([...became, ...(await intake.finish(nameless))]);
    }
  }

  #startHeartbeat(deliveries: Delivery[]): () => Promise<void> {
    const { intake, log } = this.#ports;
    const { leaseSec } = this.#options;
    const leases = deliveries.map(({ msgId, readCt }) => ({ msg_id: msgId, read_ct: readCt }));
    const everyMs = (leaseSec * 1000) / HEARTBEATS_PER_LEASE;
    return startHeartbeat(() => intake.extend(leases, leaseSec), everyMs, log).stop;
  }

  #breakerOf(target: string): Breaker {
    let breaker = this.#breakers.get(target);
    if (breaker === undefined) {
      const labels = { target: labelOfTarget(target) };
      breaker = new Breaker(this.#ports.now, (isDown) =>
        this.#ports.metrics.count('sluice_bridge_breaker_open', labels, isDown ? 1 : -1),
      );
      this.#breakers.set(target, breaker);
    }
    return breaker;
  }

  #pausedPools(): string[] {
    const isOpen = (target: string) => (this.#breakers.get(target)?.openUntilMs ?? 0) > 0;
    return [...this.#targets].filter(([, targets]) => targets.some(isOpen)).map(([poolId]) => poolId);
  }

  #pausedUntilMs(): number {
    const ends = [...this.#breakers.values()].map((breaker) => breaker.openUntilMs).filter((end) => end > 0);
    return ends.length === 0 ? 0 : Math.min(...ends);
  }
}

/** Each hook is one target. */
function targetsOf(config: PoolConfig): string[] {
  const { commit_webhook_url, validation_webhook_url } = config;
  const commit = commit_webhook_url === null ? targetsInLedger(config) : [commit_webhook_url];
  return validation_webhook_url === null ? commit : [validation_webhook_url, ...commit];
}
