// What is measured, in which order, and for how long. Ways that are compared with each other stand in one group: its
// repetitions go round all of them (A B C, A B C, …), so that a slow minute of the machine hits all alike.

export type Way =
  | 'baseline'
  | 'baseline-indexed'
  | 'single'
  | 'single-request-id'
  | 'batch'
  | 'batch-request-id'
  | 'batch-insert'
  | 'batch-small-pool'
  | 'batch-large-pool'
  | 'http'
  | 'http-indexed'
  | 'http-coalesced'
  | 'http-stub'
  | 'http-open'
  | 'floor'
  | 'sold-out-baseline'
  | 'sold-out-baseline-indexed'
  | 'sold-out';

export type Cell = {
  name: Way;
  clients: number;
  batch: number;
  /** In the pool when the run starts; 0 where nothing is sold. */
  slots: number;
  /** The run ends when the pool is sold out, and after this long at the latest. */
  maxSec: number;
  /** The run ends earlier when this many are sold. */
  sell?: number;
  /** True: goes on with what the cell before it left. */
  keep?: boolean;
  /** True: all slots are sold when the run starts. */
  soldOut?: boolean;
};

export type Group = { title: string; cells: Cell[] };

export type Plan = { repetitions: number; groups: Group[] };

type Sizes = {
  repetitions: number;
  clients: number[];
  lanes: number[];
  batches: number[];
  /** For ways that sell one slot a transaction. */
  slots: number;
  /** Long enough to sell the whole pool, or most of it: the plain design gets slower on the way. */
  drainSec: number;
  /** The same for fewer clients, who sell less of it in the time. */
  crowdlessSec: number;
  /** For ways whose rate is the same all the way: a part of the pool shows it. */
  steadySec: number;
  /** For batches of at least 100; smaller ones sell from `slots`. */
  batchSlots: number;
  batchSec: number;
  floorSec: number;
  http: number[];
  httpSlots: number;
  httpSec: number;
  openSlots: number;
  openSec: number;
  soldOutSlots: number;
  soldOutSec: number;
  smallPool: number;
  largePool: number;
  poolSec: number;
};

const FULL: Sizes = {
  repetitions: 2,
  clients: [1, 8, 32, 128],
  lanes: [1, 2, 4],
  batches: [10, 100, 1000],
  slots: 60_000,
  drainSec: 30,
  crowdlessSec: 15,
  steadySec: 6,
  batchSlots: 150_000,
  batchSec: 10,
  floorSec: 2,
  http: [64, 256],
  httpSlots: 200_000,
  httpSec: 3,
  openSlots: 600_000,
  openSec: 20,
  soldOutSlots: 500_000,
  soldOutSec: 3,
  smallPool: 10_000,
  largePool: 1_000_000,
  poolSec: 5,
};

const QUICK: Sizes = {
  ...FULL,
  repetitions: 1,
  clients: [1, 8],
  lanes: [1, 2],
  batches: [100, 1000],
  slots: 2_000,
  drainSec: 1,
  crowdlessSec: 1,
  steadySec: 1,
  batchSlots: 20_000,
  batchSec: 1,
  floorSec: 1,
  http: [64],
  httpSlots: 30_000,
  httpSec: 1,
  openSlots: 60_000,
  openSec: 1,
  soldOutSlots: 20_000,
  soldOutSec: 1,
  smallPool: 5_000,
  largePool: 20_000,
  poolSec: 1,
};

/** Where the first and the last tenth of a pool are compared for single claims. */
export const TENTHS_CLIENTS = 8;
const SOLD_OUT_CLIENTS = 8;
const SMALL_BATCH = 10;
export const PRICE_BATCH = 100;
/** As many buyers keep a connection open while they come at a fixed pace. */
export const OPEN_CLIENTS = 1_000;
/** The plain door is far from selling this many in its time. */
const PLAIN_HTTP_SLOTS = 40_000;

export function makePlan(quick: boolean): Plan {
  const s = quick ? QUICK : FULL;
  const groups = [
    ...s.clients.map((clients) => ({ title: `${clients} clients`, cells: perClients(s, clients) })),
    ...s.lanes.slice(1).map((lanes) => ({ title: `${lanes} connections`, cells: batches(s, lanes) })),
    ...s.http.map((clients) => ({ title: `HTTP, ${clients} connections`, cells: doors(s, clients) })),
    { title: 'HTTP at a fixed pace', cells: [openLoop(s)] },
    { title: 'sold out', cells: soldOut(s) },
    { title: 'small and large pools', cells: poolSizes(s) },
  ];
  return { repetitions: s.repetitions, groups };
}

function perClients(s: Sizes, clients: number): Cell[] {
  const isCrowd = clients === Math.max(...s.clients);
  const drain = { clients, batch: 1, slots: s.slots, maxSec: isCrowd ? s.drainSec : s.crowdlessSec };
  const steady = clients === TENTHS_CLIENTS ? drain : { ...drain, maxSec: s.steadySec };
  return [
    { ...drain, name: 'baseline' },
    { ...drain, name: 'baseline-indexed', maxSec: s.steadySec },
    { ...steady, name: 'single' },
    ...(clients === TENTHS_CLIENTS
      ? [{ ...drain, name: 'single-request-id' as const, maxSec: s.steadySec }]
      : []),
    { ...drain, name: 'floor', slots: 0, maxSec: s.floorSec },
    ...(clients === 1 ? batches(s, 1) : []),
  ];
}

function batches(s: Sizes, clients: number): Cell[] {
  const cells: Cell[] = s.batches.map((batch) => ({
    name: 'batch',
    clients,
    batch,
    slots: batch <= SMALL_BATCH ? s.slots : s.batchSlots,
    maxSec: s.batchSec,
  }));
  if (clients > 1) return cells;
  const price = { clients, batch: PRICE_BATCH, slots: s.batchSlots, maxSec: s.batchSec };
  return [
    ...cells,
    // As long as a batch needs for its slots, so that both tables grow to about the same size.
    { ...price, name: 'batch-insert', slots: 0, maxSec: Math.ceil(s.batchSec / 2) },
    { ...price, name: 'batch-request-id' },
  ];
}

function doors(s: Sizes, clients: number): Cell[] {
  const one = { clients, batch: 1, maxSec: s.httpSec };
  return [
    { ...one, name: 'http', slots: PLAIN_HTTP_SLOTS },
    { ...one, name: 'http-indexed', slots: PLAIN_HTTP_SLOTS },
    { ...one, name: 'http-coalesced', slots: s.httpSlots },
    { ...one, name: 'http-stub', slots: 0 },
  ];
}

function openLoop(s: Sizes): Cell {
  return { name: 'http-open', clients: OPEN_CLIENTS, batch: 1, slots: s.openSlots, maxSec: s.openSec };
}

function soldOut(s: Sizes): Cell[] {
  const one = {
    clients: SOLD_OUT_CLIENTS,
    batch: 1,
    slots: s.soldOutSlots,
    maxSec: s.soldOutSec,
    soldOut: true,
  };
  return [
    { ...one, name: 'sold-out-baseline' },
    { ...one, name: 'sold-out-baseline-indexed' },
    { ...one, name: 'sold-out' },
  ];
}

/** The large pool is filled once for all sizes of batch: each goes on where the one before it stopped. */
function poolSizes(s: Sizes): Cell[] {
  const batches = s.batches.filter((batch) => batch > SMALL_BATCH);
  const one = { clients: 1, maxSec: s.poolSec };
  const small = { ...one, name: 'batch-small-pool' as const, slots: s.smallPool, sell: s.smallPool };
  const share = s.largePool / batches.length;
  const large = { ...one, name: 'batch-large-pool' as const, slots: s.largePool, sell: share };
  return [
    ...batches.map((batch) => ({ ...small, batch })),
    ...batches.map((batch, at) => ({ ...large, batch, keep: at > 0 })),
  ];
}
