// What waits in DB1.

import type { CallFunction } from '#core/call_function.ts';
import type { InboxLevel, OrderLevel } from '#core/console/sample.ts';
import type { Log } from '#core/ports.ts';
import type { Page } from '../metrics.ts';
import { databasePage, type Level, type Timing } from './database_page.ts';

/** What public.live_sample answers. A pool whose slot cache is lost has nulls. */
interface Sample {
  /** Messages ever put on the queue. */
  readonly enqueued: number;
  readonly queue_depth: number;
  /** Null where the queue is empty. */
  readonly oldest_msg_sec: number | null;
  readonly dlq_depth: number;
  readonly inbox: InboxLevel;
  readonly orders: OrderLevel;
  readonly pools: readonly PoolSample[];
  /** The names of those that are open, or have a time at which they open. */
  readonly announced_pools: readonly string[];
}

type PoolSample = { readonly pool_id: string } & Readonly<Record<State, number | null>>;
type State = (typeof STATES)[number];
const STATES = ['available', 'reserved', 'consumed'] as const;

const LEVELS_OF_ONE: readonly Level<Sample>[] = [
  {
    kind: 'counter',
    name: 'sluice_queue_messages_total',
    help: 'Messages ever put on the queue, replays among them.',
    read: ({ enqueued }) => [[enqueued]],
  },
  { name: 'sluice_queue_depth', help: 'Messages on the queue.', read: ({ queue_depth }) => [[queue_depth]] },
  {
    name: 'sluice_queue_oldest_seconds',
    help: 'How long the oldest message has been on the queue.',
    read: ({ oldest_msg_sec }) => [[oldest_msg_sec ?? 0]],
  },
  {
    name: 'sluice_dead_letters',
    help: 'Claims in the dead letters.',
    read: ({ dlq_depth }) => [[dlq_depth]],
  },
  {
    name: 'sluice_inbox_depth',
    help: 'Deliveries in the inbox, which wait for DB2.',
    read: ({ inbox }) => [[inbox.waiting]],
  },
  {
    name: 'sluice_inbox_oldest_seconds',
    help: 'How long the oldest delivery has been in the inbox.',
    read: ({ inbox }) => [[inbox.oldest_sec ?? 0]],
  },
  {
    name: 'sluice_inbox_dead_letters',
    help: 'Deliveries of the inbox that DB2 refused for good.',
    read: ({ inbox }) => [[inbox.dead_letters]],
  },
  {
    name: 'sluice_inbox_doors_age_seconds',
    help: 'How old the copy of endpoints and sites is that doors verify by while DB2 is away.',
    read: ({ inbox }) => (inbox.doors_age_sec === null ? [] : [[inbox.doors_age_sec]]),
  },
  {
    name: 'sluice_orders_held',
    help: 'Orders that hold seats and are not paid.',
    read: ({ orders }) => [[orders.held]],
  },
  {
    name: 'sluice_orders_paying',
    help: 'Orders whose session is paid, while the payment is on its way.',
    read: ({ orders }) => [[orders.paying]],
  },
  {
    name: 'sluice_orders_past_bound',
    help: 'Orders that hold seats for longer than hold and grace allow, or are paid and undecided for more than a minute.',
    read: ({ orders }) => [[orders.past_bound]],
  },
  {
    name: 'sluice_orders_past_bound_seconds',
    help: 'How long the oldest of them is past its bound.',
    read: ({ orders }) => [[orders.past_bound_sec ?? 0]],
  },
  {
    name: 'sluice_checkouts_to_close',
    help: 'Sessions at Stripe that the closer has to close or to look at, due or tried before.',
    read: ({ orders }) => [[orders.to_close]],
  },
  {
    name: 'sluice_pool_slots',
    help: 'Slots by state, of pools that are open or announced.',
    labels: ['pool_id', 'state'],
    // Readers of the metrics must not learn of pools that are not announced yet.
    read: ({ pools, announced_pools }) =>
      pools.filter(({ pool_id }) => announced_pools.includes(pool_id)).flatMap(slotsOf),
  },
];

function slotsOf(pool: PoolSample) {
  return STATES.flatMap((state) => {
    const count = pool[state];
    return count === null ? [] : [[count, { pool_id: pool.pool_id, state }] as const];
  });
}

export interface MeasuredCell {
  readonly name: string;
  /** Functions of schema public. */
  readonly call: CallFunction;
}

/** Where there are several cells, each level has the label `cell`. */
export function createIntakeLevels(cells: readonly MeasuredCell[], log: Log, timing?: Timing): Page {
  const page = { database: 'DB1', upName: 'sluice_intake_up', levels: LEVELS_OF_ONE } as const;
  const lookAt = async ({ call }: MeasuredCell) =>
    (await call<{ live_sample: Sample }>('live_sample', {}))[0]?.live_sample;
  const looks = cells.map((cell) => ({
    ...(cells.length > 1 && { labels: { cell: cell.name } }),
    look: () => lookAt(cell),
  }));
  return databasePage({ ...page, looks }, log, timing);
}
