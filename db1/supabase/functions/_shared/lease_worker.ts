// The lease worker: takes items of many lanes under leases, works on each lane by itself, and finishes what is done without
// waiting for the rest. The bridge carries messages with it, the processor lets events take effect with it.
//
// A lane is what is taken fairly: a pool's messages, a handler's events. A target is what can be slow or down by itself. A
// lane whose targets have no room, or are down, is not taken from: its items wait where they are, and cost its neighbours
// nothing. An item that lost its worker twice is a suspect: it may have killed them. It is taken alone, one such item at a
// time in this process, so that its next victim is only itself.

import { codeOf } from './failure.ts';
import { startHeartbeat } from './heartbeat.ts';
import type { Clock, Log } from './ports.ts';
import { RareLines } from './rare_lines.ts';
import type { Targets } from './target.ts';

export type LaneId = number | string;

export interface Lane {
  readonly id: LaneId;
  /** All that its items may call: while one of them is down, nothing is taken. */
  readonly targets: readonly string[];
  /** Those of the targets whose room its items take up. */
  readonly occupies: readonly string[];
  /** Items of one take, at most. */
  readonly most: number;
}

export interface Want {
  readonly lane: LaneId;
  readonly wanted: number;
}

/** Items of one lane that are worked on together. */
export interface Group<Item> {
  readonly items: readonly Item[];
  /**
   * Finishes these by `end`. Their heartbeat stops before it, so that no beat hides what is handed back. Other lanes may have
   * their room at once: what keeps up a finish is not the target's trouble. Items of the same lane may have it after it.
   */
  finish<Result>(items: readonly Item[], end: () => Promise<Result>): Promise<Result>;
}

/** Items by what became of them. */
export type Outcomes = Record<string, number>;

export interface LeaseWork<Item> {
  /** What the log calls it. */
  readonly name: string;
  /** The lanes that have items, also hidden ones. */
  lanes(): Promise<readonly Lane[]>;
  /** One statement for all lanes; what it returns is leased. Suspects are left out. */
  take(wants: readonly Want[]): Promise<readonly Item[]>;
  /** At most one suspect of these lanes, leased. */
  takeSuspect(lanes: readonly LaneId[]): Promise<readonly Item[]>;
  laneOf(item: Item): LaneId;
  /** Items of one lane with different keys are worked on apart. */
  groupOf?(item: Item): string;
  /** Makes the leases of these last longer. */
  extend(items: readonly Item[]): Promise<unknown>;
  readonly heartbeatMs: number;
  /** How long an idle worker rests when no notice wakes it; IDLE_MS where left out. Each look costs about 1 ms of CPU. */
  readonly idleMs?: number;
  /**
   * How long items gather after a take that left none behind; left out, the next take follows at once. A steady stream would be
   * carried in sets of a few items, each with statements of its own.
   */
  readonly gatherMs?: number;
  /**
   * Decides and finishes the items of a group, or hands back what it has not begun when the signal aborts. Throws only where
   * the items cannot be finished: their leases run out, and they come back.
   */
  work(group: Group<Item>, signal: AbortSignal): Promise<Outcomes>;
}

export interface LeaseWorkerPorts {
  readonly targets: Targets;
  readonly now: Clock;
  readonly log: Log;
}

export interface Report {
  /** Items taken. */
  readonly total: number;
  readonly outcomes: Readonly<Outcomes>;
  /** When the first paused target may be tried again; 0 when none is paused. */
  readonly pausedUntilMs: number;
}

/** How long the list of lanes is believed. Looking for 201 lanes takes 4.6 ms, and a new lane may wait this long. */
const LANES_KEPT_MS = 100;
/** A look for suspects reads the first thousand items of each lane. */
const SUSPECTS_EVERY_MS = 1_000;
/** Where no buyer or handler waits for what is looked for, a kind of work rests longer. */
const IDLE_MS = 250;
/** After a failure of the database itself: it needs a moment before it can be read again. */
const FAILURE_MS = 1_000;

interface Round {
  readonly total: number;
  /** True where no lane is known to have more: each gave less than it was asked for, and none was left out for want of room. */
  readonly isEmptied: boolean;
  readonly groups: readonly Promise<Outcomes>[];
}

export class LeaseWorker<Item> {
  readonly #work: LeaseWork<Item>;
  readonly #ports: LeaseWorkerPorts;
  readonly #failures: RareLines;
  readonly #underWay = new Set<Promise<unknown>>();
  /** Items taken and not finished, by lane. */
  readonly #inHand = new Map<LaneId, number>();
  #lanes: ReadonlyMap<LaneId, Lane> = new Map();
  #lanesUntilMs = 0;
  #turn = 0;
  #nextSuspectMs = 0;
  #hasSuspect = false;
  // A wake that comes while a round looks at the lanes is about work that the round may not have seen.
  #isAwake = false;
  #wakeUp: () => void = () => undefined;

  constructor(work: LeaseWork<Item>, ports: LeaseWorkerPorts) {
    this.#work = work;
    this.#ports = ports;
    this.#failures = new RareLines(ports.now);
  }

  /** There is something to do: cuts an idle rest short. */
  wake(): void {
    this.#isAwake = true;
    this.#wakeUp();
  }

  /** One round, and the end of all that it took. */
  async step(signal: AbortSignal): Promise<Report> {
    this.#lanesUntilMs = 0;
    this.#nextSuspectMs = 0;
    const { total, groups } = await this.#round(signal);
    return this.#report(total, await allOf(groups));
  }

  /** Works until nothing is ready any more. Throws when the database cannot be read, after all groups have ended. */
  async drain(signal: AbortSignal): Promise<Report> {
    const ended: Promise<Outcomes>[] = [];
    let total = 0;
    try {
      while (!signal.aborted) {
        this.#lanesUntilMs = 0;
        this.#nextSuspectMs = 0;
        // A group that ends while a round looks has left room that the round did not see.
        const wasBusy = this.#underWay.size > 0;
        const round = await this.#round(signal);
        total += round.total;
        ended.push(...round.groups);
        if (round.total > 0) continue;
        if (this.#underWay.size > 0) await Promise.race(this.#underWay);
        else if (!wasBusy) break;
      }
    } finally {
      await Promise.allSettled(ended);
    }
    return this.#report(total, await allOf(ended));
  }

  /** Works until the signal aborts; then the groups finish or hand back what they hold, and it returns. */
  async run(signal: AbortSignal, onGroup: (outcomes: Outcomes) => void = () => undefined): Promise<void> {
    const onAbort = () => this.wake();
    signal.addEventListener('abort', onAbort);
    while (!signal.aborted) {
      this.#isAwake = false;
      try {
        const { total, isEmptied, groups } = await this.#round(signal);
        for (const group of groups) group.then(onGroup, (error: unknown) => this.#tellFailure(error));
        if (total === 0) await this.#rest(this.#work.idleMs ?? IDLE_MS);
        else if (isEmptied) await this.#gather(signal);
      } catch (error) {
        // The leases run out, and the items come back.
        this.#tellFailure(error);
        this.#isAwake = false;
        await this.#rest(FAILURE_MS);
      }
    }
    signal.removeEventListener('abort', onAbort);
    await Promise.allSettled(this.#underWay);
  }

  #report(total: number, outcomes: readonly Outcomes[]): Report {
    const sum: Outcomes = {};
    for (const each of outcomes)
      for (const [outcome, count] of Object.entries(each)) sum[outcome] = (sum[outcome] ?? 0) + count;
    return { total, outcomes: sum, pausedUntilMs: this.#ports.targets.pausedUntilMs };
  }

  #tellFailure(error: unknown): void {
    const untold = this.#failures.next(`${codeOf(error)} ${error}`);
    if (untold === undefined) return;
    this.#ports.log.error('worker step failed', { worker: this.#work.name, cause: error, ...untold });
  }

  /** Takes what there is room for, and starts a group for each lane. */
  async #round(signal: AbortSignal): Promise<Round> {
    const isFresh = await this.#look();
    // Before the take, which leaves a lane with a backlog no room.
    const groups = await this.#startSuspect(signal);
    let { items, isEmptied } = await this.#take();
    // Lanes may have got their first item since the last look, and a take may have moved items to other lanes.
    if (items.length === 0 && (!isFresh || this.#lanes.size > 0)) {
      this.#lanesUntilMs = 0;
      await this.#look();
      groups.push(...(await this.#startSuspect(signal)));
      ({ items, isEmptied } = await this.#take());
    }
    const suspects = groups.length;
    groups.push(...this.#grouped(items).map((group) => this.#start(group, signal)));
    // Suspects are taken one by one: where there was one, there may be more.
    return { total: items.length + suspects, isEmptied: isEmptied && suspects === 0, groups };
  }

  /** True when it looked for lanes, false when the last list still holds. */
  async #look(): Promise<boolean> {
    const nowMs = this.#ports.now();
    if (this.#lanesUntilMs > nowMs) return false;
    const lanes = await this.#work.lanes();
    this.#lanes = new Map(lanes.map((lane) => [lane.id, lane]));
    this.#lanesUntilMs = nowMs + LANES_KEPT_MS;
    const needed = new Set(lanes.flatMap((lane) => lane.targets));
    this.#ports.targets.keepOnly((name) => needed.has(name));
    return true;
  }

  async #take(): Promise<{ items: readonly Item[]; isEmptied: boolean }> {
    const open = this.#openLanes();
    const isAnyFull = this.#isAnyFull(new Set(open));
    const first = open.length === 0 ? 0 : this.#turn++ % open.length;
    const wants = this.#shares([...open.slice(first), ...open.slice(0, first)]);
    const items = wants.length === 0 ? [] : await this.#work.take(wants);
    const left = new Map(wants.map(({ lane, wanted }) => [lane, wanted]));
    for (const item of items) {
      const lane = this.#work.laneOf(item);
      left.set(lane, (left.get(lane) ?? 0) - 1);
    }
    return { items, isEmptied: !isAnyFull && [...left.values()].every((wanted) => wanted > 0) };
  }

  /** What waits for a breaker is not asked for before it closes, and may gather until then. */
  #isAnyFull(open: ReadonlySet<Lane>): boolean {
    const isShut = (name: string) => this.#ports.targets.of(name).breaker.openUntilMs > 0;
    return [...this.#lanes.values()].some((lane) => !open.has(lane) && !lane.targets.some(isShut));
  }

  #openLanes(): Lane[] {
    const hasRoom = (name: string) => this.#ports.targets.of(name).room > 0;
    return [...this.#lanes.values()].filter((lane) => lane.targets.every(hasRoom) && this.#roomOf(lane) > 0);
  }

  /** A lane that cannot finish what it has takes no more than its targets would let a single lane have. */
  #roomOf({ id, occupies }: Lane): number {
    const limits = occupies.map((name) => this.#ports.targets.of(name).limit);
    return Math.min(...limits) - (this.#inHand.get(id) ?? 0);
  }

  /** Lanes that share a target get equal shares of its room, the first ones what division leaves. */
  #shares(lanes: readonly Lane[]): Want[] {
    const shares = new Map<string, { each: number; left: number; lanes: number }>();
    for (const lane of lanes)
      for (const name of lane.occupies) {
        const left = this.#ports.targets.of(name).room;
        const sharers = (shares.get(name)?.lanes ?? 0) + 1;
        shares.set(name, { each: Math.ceil(left / sharers), left, lanes: sharers });
      }
    const wants: Want[] = [];
    for (const lane of lanes) {
      const ofLane = lane.occupies.map((name) => shares.get(name) ?? { each: 0, left: 0, lanes: 0 });
      const shared = ofLane.map(({ each, left }) => Math.min(each, left));
      const wanted = Math.min(lane.most, this.#roomOf(lane), ...shared);
      for (const share of ofLane) share.left -= wanted;
      if (wanted > 0) wants.push({ lane: lane.id, wanted });
    }
    return wants;
  }

  /** The suspect's group, where it is time to look for one and there is one. */
  async #startSuspect(signal: AbortSignal): Promise<Promise<Outcomes>[]> {
    const nowMs = this.#ports.now();
    if (this.#hasSuspect || nowMs < this.#nextSuspectMs) return [];
    const open = this.#openLanes();
    if (open.length === 0) return [];
    const items = await this.#work.takeSuspect(open.map((lane) => lane.id));
    this.#hasSuspect = items.length > 0;
    // Where there was one, there may be more: its worker held many when it died.
    this.#nextSuspectMs = this.#hasSuspect ? nowMs : nowMs + SUSPECTS_EVERY_MS;
    return this.#hasSuspect ? [this.#start(items, signal, () => (this.#hasSuspect = false))] : [];
  }

  #grouped(items: readonly Item[]): Item[][] {
    const groups = new Map<string, Item[]>();
    for (const item of items) {
      const key = `${this.#work.laneOf(item)} ${this.#work.groupOf?.(item) ?? ''}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [item]);
      else group.push(item);
    }
    return [...groups.values()];
  }

  /** The group is under way until its promise settles. */
  #start(
    items: readonly Item[],
    signal: AbortSignal,
    onEnd: () => void = () => undefined,
  ): Promise<Outcomes> {
    const running = this.#run(items, signal);
    const settled = running
      .catch(() => undefined)
      .then(() => {
        this.#underWay.delete(settled);
        onEnd();
        this.wake();
      });
    this.#underWay.add(settled);
    return running;
  }

  async #run(items: readonly Item[], signal: AbortSignal): Promise<Outcomes> {
    const laneId = this.#work.laneOf(items[0] as Item);
    const lane = this.#lanes.get(laneId);
    const occupied = (lane?.occupies ?? []).map((name) => this.#ports.targets.of(name));
    const leave = (count: number): void => {
      for (const target of occupied) target.leave(count);
    };
    const hold = (count: number): void => {
      const inHand = (this.#inHand.get(laneId) ?? 0) + count;
      if (inHand > 0) this.#inHand.set(laneId, inHand);
      else this.#inHand.delete(laneId);
    };
    for (const target of occupied) target.enter(items.length);
    hold(items.length);
    const held = new Set(items);
    const heartbeat = startHeartbeat(
      () => (held.size > 0 ? this.#work.extend([...held]) : Promise.resolve()),
      this.#work.heartbeatMs,
      this.#ports.log,
    );
    const finish: Group<Item>['finish'] = async (finished, end) => {
      const left = finished.filter((item) => held.delete(item)).length;
      leave(left);
      try {
        await heartbeat.settled();
        return await end();
      } finally {
        hold(-left);
        if (held.size > 0) this.wake();
      }
    };
    try {
      return await this.#work.work({ items, finish }, signal);
    } finally {
      await heartbeat.stop();
      leave(held.size);
      hold(-held.size);
    }
  }

  /** A word does not cut it short: what it is about is taken with the rest. */
  async #gather(signal: AbortSignal): Promise<void> {
    const { gatherMs = 0 } = this.#work;
    if (gatherMs === 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, gatherMs);
      signal.addEventListener('abort', end);
    });
  }

  async #rest(ms: number): Promise<void> {
    if (this.#isAwake) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wakeUp = () => undefined;
  }
}

/** Waits for all, and throws the first failure afterwards. */
async function allOf<Value>(promises: readonly Promise<Value>[]): Promise<Value[]> {
  const ends = await Promise.allSettled(promises);
  return ends.map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
}
