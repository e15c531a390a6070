// What waits in DB1: asked for when somebody looks, because no process knows it alone.

import { Counter, Gauge, Registry } from 'prom-client';
import type { CallFunction } from '#core/call_function.ts';
import type { Log } from '#core/ports.ts';
import type { Page } from '../metrics.ts';
import { keptForASecond } from './kept.ts';

/** What public.live_sample answers. A pool whose slot cache is lost has nulls. */
interface Sample {
  /** Messages ever put on the queue. */
  readonly enqueued: number;
  readonly queue_depth: number;
  /** Null where the queue is empty. */
  readonly oldest_msg_sec: number | null;
  readonly dlq_depth: number;
  readonly pools: readonly ({ readonly pool_id: string } & Readonly<Record<State, number | null>>)[];
}

type State = (typeof STATES)[number];
const STATES = ['available', 'reserved', 'consumed'] as const;

/** `call` takes names of functions in schema public of DB1. Without DB1 the page says so and the rest is missing. */
export function createIntakeLevels(
  call: CallFunction,
  log: Log,
  now: () => number = Date.now,
  waitMs?: number,
): Page {
  const registry = new Registry();
  return keptForASecond(registry, {
    database: 'DB1',
    look: async () => (await call<{ live_sample: Sample }>('live_sample', {}))[0]?.live_sample,
    show: createGauges(registry),
    log,
    now,
    waitMs,
  });
}

function createGauges(registry: Registry) {
  const registers = [registry];
  const isUp = new Gauge({
    name: 'sluice_intake_up',
    help: 'Whether DB1 answered; where it is 0 the other numbers about it are missing.',
    registers,
  });
  const enqueued = new Counter({
    name: 'sluice_queue_messages_total',
    help: 'Messages ever put on the queue, replays among them.',
    registers,
  });
  const depth = new Gauge({ name: 'sluice_queue_depth', help: 'Messages on the queue.', registers });
  const oldest = new Gauge({
    name: 'sluice_queue_oldest_seconds',
    help: 'How long the oldest message has been on the queue.',
    registers,
  });
  const dead = new Gauge({
    name: 'sluice_dead_letters',
    help: 'Claims in the dead letters.',
    registers,
  });
  const slots = new Gauge({
    name: 'sluice_pool_slots',
    help: 'Slots of a pool by state.',
    labelNames: ['pool_id', 'state'],
    registers,
  });
  return (sample: Sample | undefined): void => {
    isUp.set(sample === undefined ? 0 : 1);
    // What is not known is left out: a reset gauge without labels would say 0.
    for (const metric of [enqueued, depth, oldest, dead]) metric.remove();
    slots.reset();
    if (sample === undefined) return;
    enqueued.inc(sample.enqueued);
    depth.set(sample.queue_depth);
    oldest.set(sample.oldest_msg_sec ?? 0);
    dead.set(sample.dlq_depth);
    for (const pool of sample.pools)
      for (const state of STATES) {
        const count = pool[state];
        if (count !== null) slots.set({ pool_id: pool.pool_id, state }, count);
      }
  };
}
