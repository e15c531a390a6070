// A bridge on ports that live in memory: the queue, both databases and the hooks as a test wants them.

import { Bridge } from '#core/bridge/bridge.ts';
import type {
  BridgePorts,
  Finish,
  LaneOfPool,
  Payload,
  PoolConfig,
  TakenMessage,
} from '#core/bridge/ports.ts';
import { NO_TRACER, type TracedSpan } from '#core/ports.ts';

type QueuedMessage = TakenMessage & { visibleAtMs: number };
export type LogLine = Record<string, unknown> & { level: string; message: string };
export type FinalizeBatch = (
  payloads: readonly Payload[],
) => ('committed' | 'already' | 'conflict' | 'voided')[];

export const LEASE_SEC = 30;
const LAST_LANE = 8_191;
export const neverAborted = new AbortController().signal;

/** An error as a database driver throws it. */
export function databaseError(code: string, message = 'planted'): Error {
  return Object.assign(new Error(message), { code });
}

export function poolConfig(poolId: string, rules: Partial<PoolConfig> = {}): PoolConfig {
  return {
    pool_id: poolId,
    max_retries: 10,
    visibility_timeout_sec: 45,
    validation_webhook_url: null,
    commit_rpc_name: 'finalize_transaction',
    commit_webhook_url: null,
    allowed_hosts: [],
    ...rules,
  };
}

/** A uuid that shows its number. */
export const uuid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

export const payload = (n: number, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  claim_id: uuid(n),
  pool_id: 'pool',
  resource_id: uuid(n + 1_000_000),
  user_id: `user ${n}`,
  state: 'queued',
  ...more,
});

export class World {
  nowMs = 1_000_000;
  readonly queue: QueuedMessage[] = [];
  readonly pools = new Map([['pool', poolConfig('pool')]]);
  /** Every finish by message, the remembered validations among them. */
  readonly finishes = new Map<number, Finish[]>();
  /** For each look at the lanes: the pools that have messages and were not taken from. */
  readonly leftAlone: string[][] = [];
  readonly extended: { msg_id: number; read_ct: number }[][] = [];
  readonly ledgerCalls: Payload[][] = [];
  readonly asked: Payload[][] = [];
  readonly customCalls: { functionName: string; payload: Payload }[] = [];
  readonly posts: { url: string; id: string; key: string; claimId: string; payload: Payload }[] = [];
  readonly log: LogLine[] = [];
  /** By name and labels. */
  readonly counted = new Map<string, number>();
  readonly spans: TracedSpan[] = [];
  /** Targets that were found down, and why. */
  readonly outages: [target: string, why: string][] = [];
  ledgersMade = 0;
  #lastId = 0;

  finalizeBatch: (
    payloads: readonly Payload[],
  ) => ReturnType<FinalizeBatch> | Promise<ReturnType<FinalizeBatch>> = (payloads) =>
    payloads.map(() => 'committed');
  /** Those whose ticket the ledger has already. */
  ticketOf: (payload: Payload) => 'already' | 'conflict' | undefined = () => undefined;
  callCustom: (functionName: string, payload: Payload) => void | Promise<void> = () => undefined;
  answer: (url: string, payload: Payload, signal: AbortSignal) => number | Promise<number> = () => 200;
  /** As the intake knows the claim, by its id in lower case: undefined where it has none of that name that lives. */
  isFirst: (claimId: string) => boolean | undefined = () => true;
  random: () => number = () => 1;
  /** When a heartbeat is answered. */
  extending: Promise<void> = Promise.resolve();
  /** Lets a test spoil an answer of finish. */
  onFinish: (finishes: readonly Finish[]) => void | Promise<void> = () => undefined;

  readonly bridge: Bridge;

  constructor(batchSize = 1_000, leaseSec = LEASE_SEC, batches = 1) {
    this.bridge = new Bridge(this.#ports(), { batchSize, leaseSec, batches });
  }

  send(message: unknown, more: Partial<TakenMessage> = {}): number {
    const msgId = this.#laneOf(message) * 2 ** 40 + ++this.#lastId;
    this.queue.push({
      msg_id: msgId,
      read_ct: 0,
      attempts: 0,
      takeovers: 0,
      message,
      claim_state: 'queued',
      ...more,
      visibleAtMs: 0,
    });
    return msgId;
  }

  step(signal: AbortSignal = neverAborted) {
    return this.bridge.step(signal);
  }

  /** How the last delivery of a message ended. */
  endOf(msgId: number): Finish | undefined {
    return this.finishes.get(msgId)?.at(-1);
  }

  #ports(): BridgePorts {
    const write =
      (level: string) =>
      (message: string, fields: Record<string, unknown> = {}): void => {
        this.log.push({ level, message, ...fields });
      };
    return {
      intake: {
        lanes: async () => this.#lanes(),
        take: async (wants, leaseSec) => {
          const wanted = wants.map(({ lane }) => [...this.pools.keys()][lane] ?? '');
          this.leftAlone.push((this.leftAlone.pop() ?? []).filter((poolId) => !wanted.includes(poolId)));
          return wants.flatMap(({ lane, wanted }) => this.#take(lane, wanted, leaseSec, false));
        },
        takeSuspect: async (lanes, leaseSec) => {
          const lane = lanes.find((one) => this.#free(one, true).length > 0);
          return lane === undefined ? [] : this.#take(lane, 1, leaseSec, true);
        },
        config: async (poolIds) => poolIds.flatMap((poolId) => this.pools.get(poolId) ?? []),
        firstClaims: async (claimIds) => {
          const answers = claimIds.map((id) => [id.toLowerCase(), this.isFirst(id.toLowerCase())] as const);
          return new Map(answers.filter((answer): answer is [string, boolean] => answer[1] !== undefined));
        },
        extend: async (messages) => {
          this.extended.push([...messages]);
          await this.extending;
          return messages.map((message) => message.msg_id);
        },
        finish: async (finishes) => {
          await this.onFinish(finishes);
          return this.#finish(finishes);
        },
      },
      ledger: () => {
        this.ledgersMade++;
        return {
          finalizeBatch: async (payloads) => {
            this.ledgerCalls.push([...payloads]);
            return this.finalizeBatch(payloads);
          },
          ticketsOf: async (payloads) => {
            this.asked.push([...payloads]);
            return payloads.map((one) => this.ticketOf(one));
          },
          call: async (functionName, one) => {
            this.customCalls.push({ functionName, payload: one });
            await this.callCustom(functionName, one);
          },
        };
      },
      hook: {
        post: async ({ url, payload: one, id, idempotencyKey: key, claimId, signal }) => {
          this.posts.push({ url, id, key, claimId, payload: one });
          return this.answer(url, one, signal);
        },
      },
      log: {
        debugEnabled: true,
        debug: write('debug'),
        info: write('info'),
        warn: write('warn'),
        error: write('error'),
      },
      metrics: {
        count: (name, labels, by = 1) => {
          const key = [name, ...Object.values(labels)].join(' ');
          this.counted.set(key, (this.counted.get(key) ?? 0) + by);
        },
        observe: () => undefined,
      },
      tracer: { ...NO_TRACER, isOn: true, record: (span) => void this.spans.push(span) },
      onOutage: (target, why) => void this.outages.push([target, why]),
      now: () => this.nowMs,
      random: () => this.random(),
    };
  }

  /** Pools have lanes in the order of their making, from 0; what is of no pool is in the last lane. */
  #laneOf(message: unknown): number {
    const lane = [...this.pools.keys()].indexOf((message as { pool_id?: string } | null)?.pool_id ?? '');
    return lane < 0 ? LAST_LANE : lane;
  }

  #lanes(): LaneOfPool[] {
    const lanes = new Set(this.queue.map(({ msg_id }) => Math.floor(msg_id / 2 ** 40)));
    this.leftAlone.push([...lanes].map((lane) => [...this.pools.keys()][lane] ?? ''));
    return [...lanes].map((lane) => ({
      ...([...this.pools.values()][lane] ?? poolConfig('none')),
      lane,
      pool_id: null,
    }));
  }

  #free(lane: number, isSuspect: boolean): QueuedMessage[] {
    return this.queue.filter(
      ({ msg_id, visibleAtMs, takeovers }) =>
        Math.floor(msg_id / 2 ** 40) === lane && visibleAtMs <= this.nowMs && takeovers >= 2 === isSuspect,
    );
  }

  #take(lane: number, wanted: number, leaseSec: number, isSuspect: boolean): TakenMessage[] {
    return this.#free(lane, isSuspect)
      .slice(0, wanted)
      .map((message) => {
        const taken = { ...message, read_ct: message.read_ct + 1, attempts: message.attempts + 1 };
        taken.visibleAtMs = this.nowMs + leaseSec * 1_000;
        this.queue[this.queue.indexOf(message)] = taken;
        return taken;
      });
  }

  #finish(finishes: readonly Finish[]): Map<number, string> {
    const outcomes = new Map<number, string>();
    for (const finish of finishes) {
      const place = this.queue.findIndex(
        ({ msg_id, read_ct }) => msg_id === finish.msg_id && read_ct === finish.read_ct,
      );
      const message = this.queue[place];
      if (message === undefined) {
        outcomes.set(finish.msg_id, 'lost_lease');
        continue;
      }
      this.finishes.set(finish.msg_id, [...(this.finishes.get(finish.msg_id) ?? []), finish]);
      outcomes.set(finish.msg_id, finish.verdict);
      if (finish.verdict === 'validated') {
        this.queue[place] = { ...message, claim_state: 'validated' };
      } else if (['retry', 'outage', 'untried'].includes(finish.verdict)) {
        const attempts = message.attempts - (finish.verdict === 'retry' ? 0 : 1);
        this.queue[place] = { ...message, attempts, visibleAtMs: this.nowMs + finish.delay_ms };
      } else {
        this.queue.splice(place, 1);
      }
    }
    return outcomes;
  }
}
