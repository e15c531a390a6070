// The ratios this design has to reach, each from rows of the same run.

import { type Demand, demandOf, quotient, type Row } from '../suite.ts';
import { HTTP_CPU } from './http_cpu.ts';
import { OPEN_CLIENTS, PRICE_BATCH, TENTHS_CLIENTS } from './plan.ts';

/** One claim at a time against the plain design with its index forced, which is the plan that it is meant to have. */
const SINGLE_AT_LEAST = [
  { clients: 1, atLeast: 1 },
  { clients: 8, atLeast: 1 },
  { clients: 32, atLeast: 1.1 },
  { clients: 128, atLeast: 1.1 },
];
const INSERT_AT_LEAST = 0.8;
const STUB_AT_LEAST = 0.6;
/** Of the other checkout's. */
const CPU_AT_MOST = 0.8;
const OPEN_P99_MS = 50;
/** A sender that falls behind its pace measures another load than it says. */
const OPEN_KEPT = 0.98;
const LAST_TENTH_AT_LEAST = 0.8;
const LARGE_POOL_AT_LEAST = 0.8;
const SOLD_OUT_AT_LEAST = 100;

type Pick = { name: string; clients?: number; batch?: number };

export function demands(rows: readonly Row[]): Demand[] {
  const rate = ({ name, clients, batch = 1 }: Pick): number | undefined => {
    const row = rows.find(
      (one) => one.name === name && one.batch === batch && (clients === undefined || one.clients === clients),
    );
    return row?.rate;
  };
  const best = (name: string): number | undefined => {
    const rates = rows.filter((one) => one.name === name).map((one) => one.rate);
    return rates.length === 0 ? undefined : Math.max(...rates);
  };
  const against = (what: string, atLeast: number, ours?: number, plain?: number, indexed?: number): Demand =>
    withValues(what, atLeast, quotient(ours, plain), quotient(ours, indexed));
  const baseline = (clients: number) => rate({ name: 'baseline', clients });
  const indexed = (clients: number) => rate({ name: 'baseline-indexed', clients });
  const single = (clients: number) => rate({ name: 'single', clients });
  const batch = (size: number, clients: number) => rate({ name: 'batch', clients, batch: size });
  const door = (name: string, clients: number) => rate({ name, clients });

  return [
    against('batch 100 on 1 connection / baseline on 1', 12, batch(100, 1), baseline(1), indexed(1)),
    against(
      'batch 1000 on 2 connections / baseline at its best',
      8,
      batch(1000, 2),
      best('baseline'),
      best('baseline-indexed'),
    ),
    against('single / baseline at 128 clients', 2, single(128), baseline(128), indexed(128)),
    against('single / baseline at 1 client', 1, single(1), baseline(1), indexed(1)),
    ...SINGLE_AT_LEAST.map(({ clients, atLeast }) =>
      demandOf(
        `single / baseline with its index forced, at ${clients} ${clients === 1 ? 'client' : 'clients'}`,
        atLeast,
        quotient(single(clients), indexed(clients)),
      ),
    ),
    demandOf(
      `batch ${PRICE_BATCH} on 1 connection / inserting claim rows and messages alone`,
      INSERT_AT_LEAST,
      quotient(batch(PRICE_BATCH, 1), rate({ name: 'batch-insert', batch: PRICE_BATCH, clients: 1 })),
    ),
    ...[64, 256].map((clients) =>
      demandOf(
        `http-coalesced / the same server with its database call stubbed, at ${clients} connections`,
        STUB_AT_LEAST,
        quotient(door('http-coalesced', clients), door('http-stub', clients)),
      ),
    ),
    ...cpuDemands(rows),
    openDemand(rows),
    ...[
      { clients: 64, atLeast: 4 },
      { clients: 256, atLeast: 6 },
    ].map(({ clients, atLeast }) =>
      against(
        `http-coalesced / http at ${clients} connections`,
        atLeast,
        door('http-coalesced', clients),
        door('http', clients),
        door('http-indexed', clients),
      ),
    ),
    lastTenth(rows, { name: 'batch', clients: 1, batch: 100 }),
    lastTenth(rows, { name: 'single', clients: TENTHS_CLIENTS, batch: 1 }),
    ...[100, 1000].map((size) =>
      against(
        `batch ${size}, large pool / small pool`,
        LARGE_POOL_AT_LEAST,
        rate({ name: 'batch-large-pool', batch: size }),
        rate({ name: 'batch-small-pool', batch: size }),
      ),
    ),
    against(
      'sold-out answers / baseline',
      SOLD_OUT_AT_LEAST,
      rate({ name: 'sold-out' }),
      rate({ name: 'sold-out-baseline' }),
      rate({ name: 'sold-out-baseline-indexed' }),
    ),
  ];
}

function cpuDemands(rows: readonly Row[]): Demand[] {
  const others = rows.filter(({ name, cpu_ratio }) => name === HTTP_CPU && cpu_ratio !== undefined);
  const what = (version: number | string, clients: string) =>
    `${CPU_AT_MOST} × CPU of a claim over HTTP of ${version} / ours, median of the turns${clients}`;
  if (others.length === 0) return [demandOf(what('the other checkout', ''), 1, undefined)];
  return others.map(({ version = '', clients, cpu_ratio }) =>
    demandOf(what(version, `, ${clients} connections`), 1, CPU_AT_MOST * Number(cpu_ratio)),
  );
}

/** Nothing may be refused or lost, and the pace must have been kept. */
function openDemand(rows: readonly Row[]): Demand {
  const row = rows.find(({ name }) => name === 'http-open');
  const isKept =
    row !== undefined &&
    Number(row.refused) + Number(row.broken) === 0 &&
    row.rate >= OPEN_KEPT * Number(row.offered_rate);
  return demandOf(
    `${OPEN_P99_MS} ms / p99 of claims at 60 % of the best rate from ${OPEN_CLIENTS.toLocaleString('en-US')} connections, 0 where one failed`,
    1,
    row && (isKept ? OPEN_P99_MS / row.p99_ms : 0),
  );
}

function lastTenth(rows: readonly Row[], { name, clients, batch }: Required<Pick>): Demand {
  const row = rows.find((one) => one.name === name && one.clients === clients && one.batch === batch);
  const what = `${name} ${batch === 1 ? '' : `${batch} `}on ${clients}: last tenth of the pool / first`;
  const value = quotient(asNumber(row?.last_tenth_rate), asNumber(row?.first_tenth_rate));
  return withValues(what, LAST_TENTH_AT_LEAST, value);
}

function asNumber(value: number | string | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

function withValues(what: string, atLeast: number, value?: number, friendlier?: number): Demand {
  return {
    what,
    atLeast,
    ...(value !== undefined && { value }),
    ...(friendlier !== undefined && { friendlier }),
  };
}
