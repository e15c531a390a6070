// The cost suite: CPU and write-ahead log for a claim, for a message on its way to the ledger and for an event that is recorded,
// here and in another checkout.

import { setTimeout as pause } from 'node:timers/promises';
import { cpuUs, postmasterOf } from './cpu.ts';
import type { HealthyOrder } from './neighbours/healthy.ts';
import { failuresOf } from './neighbours/measure.ts';
import type { Place } from './neighbours/neighbour.ts';
import { type OpenPlace, type Version, versionsOf, withPlace } from './neighbours/place.ts';
import { type Column, makeTable } from './rows.ts';
import { median } from './stats.ts';
import type { Demand, Suite } from './suite.ts';
import { settle } from './world.ts';

/** The warm-up is long enough for Node to have compiled what is measured: a fresh worker takes twice the CPU. */
const FULL = { rounds: 11, claims: 12_000, perSec: 1_500, warmUp: 12_000 };
/** Shows that every part runs. With 50 claims a quick machine used less than the tick that the kernel counts CPU in. */
const QUICK: Plan = { rounds: 1, claims: 500, perSec: 500, warmUp: 20 };
const PATIENCE_MS = 30_000;
const TURN_MS = 150;
const MAX_GROWTH = 1.05;
const MS_PER_SEC = 1_000;

type Plan = typeof FULL;
const NAMES = [
  ...(['claim_cpu_us', 'claim_wal_bytes', 'message_cpu_us', 'message_wal_bytes'] as const),
  ...(['event_cpu_us', 'event_wal_bytes'] as const),
];
/** Of one claim, of one message, and of one event. */
type Sample = Record<(typeof NAMES)[number], number>;
/** Of one operation. */
export type Cost = { cpuUs: number; walBytes: number };
const NOTHING: Cost = { cpuUs: Number.NaN, walBytes: Number.NaN };
type CostRow = Sample & { name: string; version: string; rounds: number; ops: number };

const COLUMNS: Column<CostRow>[] = [
  { heading: 'version', isText: true, text: ({ version }) => version },
  { heading: 'claim CPU µs', text: (row) => row.claim_cpu_us.toFixed(0) },
  { heading: 'claim WAL bytes', text: (row) => row.claim_wal_bytes.toFixed(0) },
  { heading: 'message CPU µs', text: (row) => row.message_cpu_us.toFixed(0) },
  { heading: 'message WAL bytes', text: (row) => row.message_wal_bytes.toFixed(0) },
  { heading: 'event CPU µs', text: (row) => row.event_cpu_us.toFixed(0) },
  { heading: 'event WAL bytes', text: (row) => row.event_wal_bytes.toFixed(0) },
];

export const cost: Suite = {
  summary:
    'CPU and write-ahead log for each claim and event through HTTP and each message carried to the ledger',
  compares: true,
  async run({ quick, against, progress }) {
    const plan = quick ? QUICK : FULL;
    const taken = new Map<string, Sample[]>();
    let settings: Record<string, string> = {};
    const slots = plan.warmUp + plan.rounds * plan.claims;
    await withPlaces(
      versionsOf(against),
      slots,
      async () => undefined,
      async (places) => {
        await round(places, plan.warmUp, plan.perSec);
        for (const [, place] of places) settings = await place.db1.settings();
        for (let number = 1; number <= plan.rounds; number++) {
          progress(`round ${number} of ${plan.rounds}`);
          // The order changes from round to round: whatever drifts, drifts for both.
          const inTurn = number % 2 === 0 ? [...places].reverse() : places;
          const samples = await round(inTurn, plan.claims, plan.perSec);
          for (const [name] of places)
            taken.set(name, [...(taken.get(name) ?? []), samples.get(name) as Sample]);
        }
      },
    );
    const rows = [...taken].map(([version, samples]) => rowOf(version, samples, plan));
    const raw = [...taken].map(([version, samples]) => `${version}: ${samples.map(rawOf).join(' ')}`);
    return {
      settings,
      rows,
      demands: demandsOf(taken),
      notes: `rounds (claim CPU/WAL, message CPU/WAL, event CPU/WAL)\n${raw.join('\n')}`,
    };
  },
  table: (rows) => makeTable(COLUMNS, rows as readonly CostRow[]),
};

/** All versions stand side by side, so that the rounds can take turns. */
export function withPlaces(
  [version, ...rest]: readonly Version[],
  slots: number,
  prepare: (place: Place, version: Version) => Promise<void>,
  use: (places: readonly [string, OpenPlace][]) => Promise<void>,
  open: readonly [string, OpenPlace][] = [],
): Promise<void> {
  if (version === undefined) return use(open);
  const own = { healthy: 'claims' as const, prepare: (place: Place) => prepare(place, version) };
  return withPlace(version, own, slots, (place) =>
    withPlaces(rest, slots, prepare, use, [...open, [version.name, place]]),
  );
}

/** The workers stand still while the claims come, carry them in turns, and stand still again while the events come. */
async function round(
  places: readonly [string, OpenPlace][],
  count: number,
  perSec: number,
): Promise<Map<string, Sample>> {
  const [claims, events] = [new Map<string, Cost>(), new Map<string, Cost>()];
  for (const [name, place] of places) claims.set(name, await receive(place, 'claims', count, perSec));
  const messages = await carry(places, count);
  for (const [name, place] of places) {
    events.set(name, await receive(place, 'events', count, perSec));
    await takeEffect(place);
  }
  return new Map(
    places.map(([name]) => {
      const [claim, message, event] = [claims, messages, events].map(
        (costs) => costs.get(name) ?? NOTHING,
      ) as [Cost, Cost, Cost];
      return [
        name,
        {
          claim_cpu_us: claim.cpuUs,
          claim_wal_bytes: claim.walBytes,
          message_cpu_us: message.cpuUs,
          message_wal_bytes: message.walBytes,
          event_cpu_us: event.cpuUs,
          event_wal_bytes: event.walBytes,
        },
      ];
    }),
  );
}

export async function receive(
  place: OpenPlace,
  kind: 'claims' | 'events',
  count: number,
  perSec: number,
  more: Pick<HealthyOrder, 'pool' | 'hasSecrets'> = {},
): Promise<Cost> {
  const { db1, db2, server, worker } = place;
  for (const session of [db1, db2]) await settle(session);
  worker.stall();
  const spent = await meter(place, [server.pid, await postmasterOf(kind === 'claims' ? db1 : db2)]);
  const report = await place.measure({ kind, count, perSec, patienceMs: PATIENCE_MS, ...more });
  if (failuresOf(report) > 0) throw new Error(`${kind} failed: ${JSON.stringify(report.failures)}`);
  return spent(count);
}

/** The events take effect unmeasured, so that they are not in the way of the next round. */
async function takeEffect({ db2, worker }: OpenPlace): Promise<void> {
  const untilMs = performance.now() + 10 * PATIENCE_MS;
  worker.goOn();
  while (
    await db2.ask<boolean>("select exists (select from public.webhook_events where status <> 'success')")
  ) {
    if (performance.now() > untilMs)
      throw new Error(`events are left after ${(10 * PATIENCE_MS) / MS_PER_SEC} s`);
    await pause(TURN_MS);
  }
}

/** In short turns: the speed of a shared machine changes within seconds, and by a third. */
export async function carry(
  places: readonly [string, OpenPlace][],
  count: number,
): Promise<Map<string, Cost>> {
  const untilMs = performance.now() + 10 * PATIENCE_MS;
  const meters = new Map<string, (ops: number) => Promise<Cost>>();
  for (const [name, place] of places) {
    const { db1, db2, worker } = place;
    meters.set(name, await meter(place, [worker.pid, await postmasterOf(db1), await postmasterOf(db2)]));
  }
  let waiting = places;
  while (waiting.length > 0) {
    if (performance.now() > untilMs)
      throw new Error(`messages are left after ${(10 * PATIENCE_MS) / MS_PER_SEC} s`);
    const left: [string, OpenPlace][] = [];
    for (const [name, place] of waiting) {
      place.worker.goOn();
      await pause(TURN_MS);
      place.worker.stall();
      if ((await place.db1.ask<number>('select count(*)::int from pgmq.q_intake_queue')) > 0)
        left.push([name, place]);
    }
    waiting = left.reverse();
  }
  const costs = new Map<string, Cost>();
  for (const [name, place] of places) {
    place.worker.goOn();
    costs.set(name, (await meters.get(name)?.(count)) ?? NOTHING);
  }
  return costs;
}

/** What these processes and both databases use from now on. */
async function meter(
  { db1, db2 }: OpenPlace,
  pids: readonly number[],
): Promise<(ops: number) => Promise<Cost>> {
  const cpu = () => pids.reduce((sum, pid) => sum + cpuUs(pid), 0);
  const wal = async () => (await db1.walBytes()) + (await db2.walBytes());
  const [cpuBefore, walBefore] = [cpu(), await wal()];
  return async (ops) => ({ cpuUs: (cpu() - cpuBefore) / ops, walBytes: ((await wal()) - walBefore) / ops });
}

function rowOf(version: string, samples: readonly Sample[], plan: Plan): CostRow {
  const medians = Object.fromEntries(
    NAMES.map((name) => [name, median(samples.map((sample) => sample[name]))]),
  ) as Sample;
  return { name: version, version, rounds: samples.length, ops: plan.claims, ...medians };
}

const rawOf = (sample: Sample): string =>
  ['claim', 'message', 'event']
    .map((of) => [`${of}_cpu_us`, `${of}_wal_bytes`] as [keyof Sample, keyof Sample])
    .map(([cpu, wal]) => `${sample[cpu].toFixed(0)}/${sample[wal].toFixed(0)}`)
    .join();

/** Round by round against the other checkout; the median of the ratios. */
export function demandsOf(taken: ReadonlyMap<string, readonly Sample[]>): Demand[] {
  const [ours = [], theirs] = [...taken.values()];
  return NAMES.map((name) => ({
    what: `${MAX_GROWTH} times the other checkout's ${name} / ours, median of the rounds`,
    atLeast: 1,
    ...(theirs && {
      value: median(ours.map((sample, at) => (MAX_GROWTH * (theirs[at]?.[name] ?? 0)) / sample[name])),
    }),
  }));
}
