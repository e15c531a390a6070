// Lanes that live in memory, for a lease worker.

import { type Group, type Lane, LeaseWorker, type Want } from '#core/lease_worker.ts';
import { Targets } from '#core/target.ts';
import { memoryLog } from './support.ts';

export interface Item {
  readonly lane: string;
  readonly n: number;
  readonly isSuspect?: boolean;
}

/** Holds a group of one lane until the test lets it go. */
export interface Gate {
  readonly open: () => void;
  readonly passed: Promise<void>;
}

export function gate(): Gate {
  let open = (): void => undefined;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, passed };
}

export const turns = async (count = 20): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

export class World {
  nowMs = 1_000_000;
  readonly waiting: Item[] = [];
  readonly lanes = new Map<string, Lane>();
  readonly limits = new Map<string, number>();
  readonly takes: (readonly Want[])[] = [];
  readonly extended: (readonly Item[])[] = [];
  readonly finished: Item[] = [];
  looks = 0;
  extending: Promise<void> = Promise.resolve();
  /** The lane whose items cannot be taken. */
  hidden = '';
  /** What happens while it looks for lanes. */
  looking: () => Promise<void> = async () => undefined;
  /** What happens while it looks for suspects. */
  suspecting: () => Promise<void> = async () => undefined;
  /** What happens while it takes. */
  taking: () => Promise<void> = async () => undefined;
  /** What a group does before it finishes its items all together. */
  before: (group: Group<Item>, signal: AbortSignal) => Promise<void> = async () => undefined;
  readonly targets = new Targets({ now: () => this.nowMs, limitOf: (name) => this.limits.get(name) ?? 100 });
  readonly log = memoryLog();
  readonly worker: LeaseWorker<Item>;

  constructor({ gatherMs = 0 } = {}) {
    this.worker = new LeaseWorker<Item>(
      {
        name: 'test',
        lanes: async () => {
          this.looks++;
          await this.looking();
          return [...this.lanes.values()].filter(({ id }) => this.waiting.some(({ lane }) => lane === id));
        },
        take: async (wants) => {
          this.takes.push(wants);
          await this.taking();
          const open = wants.filter(({ lane }) => lane !== this.hidden);
          return open.flatMap(({ lane, wanted }) => this.#remove(lane, wanted, false));
        },
        takeSuspect: async (lanes) => {
          await this.suspecting();
          return lanes.flatMap((lane) => this.#remove(String(lane), 1, true)).slice(0, 1);
        },
        laneOf: ({ lane }) => lane,
        extend: async (items) => {
          this.extended.push(items);
          await this.extending;
        },
        heartbeatMs: 5,
        gatherMs,
        work: async (group, signal) => {
          await this.before(group, signal);
          const left = group.items.filter((item) => !this.finished.includes(item));
          await group.finish(left, async () => this.finished.push(...left));
          return { done: group.items.length };
        },
      },
      { targets: this.targets, now: () => this.nowMs, log: this.log },
    );
  }

  /** A lane whose target has its name unless the test says otherwise. */
  fill(lane: string, count: number, { targets = [lane], most = 100, isSuspect = false } = {}): void {
    this.lanes.set(lane, { id: lane, targets, occupies: targets, most });
    for (let n = 0; n < count; n++) this.waiting.push({ lane, n, isSuspect });
  }

  #remove(lane: LaneName, wanted: number, isSuspect: boolean): Item[] {
    const taken = this.waiting.filter(
      (item) => item.lane === lane && (item.isSuspect ?? false) === isSuspect,
    );
    const items = taken.slice(0, wanted);
    for (const item of items) this.waiting.splice(this.waiting.indexOf(item), 1);
    return items;
  }

  count(lane: string): number {
    return this.finished.filter((item) => item.lane === lane).length;
  }
}

type LaneName = string | number;
export const never = new AbortController().signal;
