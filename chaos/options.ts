// What a run can be told, by a person and by a test.

import { parseArgs } from 'node:util';
import { UsageError } from '../bench/command.ts';
import { MAX_PROCESSES } from '../src/processes/part.ts';

/** Faults of a pool, an endpoint, a caller or a worker beside which a healthy one must not suffer: I13 is judged by them. */
export const NEIGHBOURS = [
  'neighbour-slow-hook',
  'neighbour-failing-hook',
  'neighbour-stuck-transaction',
  'neighbour-killed-workers',
  'neighbour-flood',
] as const;

/** Faults of Stripe: it is a stand-in of its own process, with its own clock and its own books. */
export const STRIPE_FAULTS = [
  'stripe-down',
  'stripe-slow',
  'stripe-cut-after-request',
  'webhook-dropped',
  'stripe-clock',
] as const;

/** What a run has unless it is told otherwise. */
export const FAULTS = [
  'kill-db1-postmaster',
  'kill-db2-postmaster',
  'kill-db1-backend',
  'kill-db2-backend',
  'stop-db1-immediate',
  'stop-db2-immediate',
  'kill-worker',
  'kill-server',
  'stall-worker',
  'delay',
  'cut',
  'half-open',
  'cut-after-request',
  'flush-redis',
  'kill-redis',
  'target-errors',
  'clock-skew',
  'rolling-restart',
  ...STRIPE_FAULTS,
  ...NEIGHBOURS,
] as const;

/** Where servers and workers have several processes each: one is killed by itself, or all are restarted in turn. */
export const PROCESS_FAULTS = ['kill-process', 'reload'] as const;

/** Asked for by name: the databases are on disks of their own then, which only root can have. */
export const POWER_CUT = 'power-cut';

const ALL_FAULTS = [...FAULTS, ...PROCESS_FAULTS, POWER_CUT] as const;

export type FaultName = (typeof ALL_FAULTS)[number];

const neighbourNames: ReadonlySet<string> = new Set(NEIGHBOURS);
export const isNeighbour = (fault: string): boolean => neighbourNames.has(fault);

const ofProcesses: ReadonlySet<string> = new Set(PROCESS_FAULTS);
const isOfProcesses = (fault: string): boolean => ofProcesses.has(fault);

export type Phase = 'start' | 'warm' | 'storm' | 'calm' | 'drain' | 'collect';

export type Progress = {
  phase: Phase;
  /** Since the run began. */
  atMs: number;
  /** Answers that clients can count on, in all and in the last second. */
  acknowledgements: number;
  perSecond: number;
  /** Faults begun so far, and those that are not healed yet. */
  faults: number;
  open: readonly string[];
};

export type RunOptions = {
  seed: number;
  minutes: number;
  faults: readonly FaultName[];
  /** Those of them that happen first, in this order: for a run that is too short for all. */
  first?: readonly FaultName[];
  /** `small` is for tests: a third of the load and short phases. */
  scale?: 'full' | 'small';
  /** Of each server and each worker; 1 where left out. */
  processes?: number;
  /** SQL applied after the migrations: for negative controls. */
  patch?: { db1?: string; db2?: string };
  /** Settings of the Postgres servers, such as synchronous_commit. */
  settings?: { db1?: Record<string, string>; db2?: Record<string, string> };
  /** How long everything may take to come to rest; for negative controls that never do. */
  drainMs?: number;
  /** Ends the storm early; the run still calms down, drains and is collected. */
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
  /** True keeps the journals and logs; where they are is in the history's `dir`. */
  keep?: boolean;
};

export type Command = {
  seed: number;
  minutes: number;
  faults: readonly FaultName[];
  scale: 'full' | 'small';
  processes: number;
  json?: string;
  keep: boolean;
  /** Of a run that is kept. */
  controls: boolean;
  journals: boolean;
};

export type CellsCommand = {
  seed: number;
  failovers: number;
  /** After so long no fault begins; what is under way is ended and looked at. Not bounded where left out. */
  minutes?: number;
  /** Goes on where an earlier run with this seed ended. */
  resume: boolean;
  controls: boolean;
  /** Writes chaos/summaries/cells.json when all is done. */
  keep: boolean;
};

const DEFAULT_FAILOVERS = 5;
const MAX_FAILOVERS = 1_000;

export const USAGE = `npm run chaos -- [--seed N] [--minutes M] [--faults a,b,…] [--processes N] [--scale full|small] [--json file] [--keep [--skip-controls]] [--journals]

Starts two Postgres servers, PostgREST, Redis, a stand-in for Stripe, two servers and two workers, lets buyers, providers, callers
and an operator work with them while faults happen, then lets everything come to rest and judges what is left against the
promises I1 to I18.
Ends with 0 when nothing was violated.

Options:
  --seed N       repeats the schedule of the run with this seed (default: by chance)
  --minutes M    how long faults happen (default 1); decimals are fine
  --faults a,b   only these faults; "none" for none, "neighbours" for those that I13 is judged by, "stripe" for Stripe's
                 (default: all but power-cut, which needs root on Debian: databases on disks of their own lose what was
                 never synced; ${PROCESS_FAULTS.join(' and ')} are for several processes)
  --processes N  of each server and each worker (default 1, at most ${MAX_PROCESSES}): \`sluice serve --processes N\`
  --scale S      small is a third of the load (default full)
  --json file    writes the verdict, the counts and the faults there
  --keep         adds this run to chaos/summaries/chaos.json, which git keeps, beside runs of other seeds and the same product
                 files; then runs the negative controls (--skip-controls leaves these out) and writes docs/reliability.md.
                 Refuses where the product files changed while it ran
  --journals     leaves journals and logs also when nothing was violated
  --cells        instead of all this: a cell of three nodes under Patroni for each database, on Debian as root; faults of cells
                 under claims, events and calls, until --failovers N (default ${DEFAULT_FAILOVERS}) of them have moved a primary; then controls
                 that must lose something. --skip-controls leaves these out. --minutes M begins no fault after M minutes.
                 --resume goes on with the faults of --seed N where results/chaos/cells-N.jsonl ends, on the same product
                 files. --keep writes chaos/summaries/cells.json when all is done.

The raw result goes to results/chaos/, which git ignores.

Faults:
${ALL_FAULTS.map((fault) => `  ${fault}`).join('\n')}

Examples:
  npm run chaos -- --seed 1 --minutes 1
  npm run chaos -- --faults kill-worker,stall-worker --minutes 0.5 --json run.json
  npm run chaos -- --faults neighbours --minutes 2 --scale small
  npm run chaos -- --processes 2 --minutes 5
  npm run chaos -- --faults power-cut --minutes 12 --seed 1
  npm run chaos -- --cells --failovers 20 --seed 1
  npm run chaos -- --cells --failovers 100 --seed 1 --minutes 30 --resume`;

const MAX_SEED = 2 ** 31 - 1;
/** A day: longer runs are better made as several, each with a seed of its own. */
const MAX_MINUTES = 24 * 60;

/** Undefined where cells are not asked for, or help is. */
export function readCellsCommand(args: string[], chosenSeed: () => number): CellsCommand | undefined {
  if (!args.includes('--cells') || args.includes('--help') || args.includes('-h')) return undefined;
  const { values } = parseArgs({
    args,
    options: {
      cells: { type: 'boolean' },
      seed: { type: 'string' },
      failovers: { type: 'string' },
      minutes: { type: 'string' },
      resume: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      'skip-controls': { type: 'boolean', default: false },
    },
  });
  const failovers = Number(values.failovers ?? DEFAULT_FAILOVERS);
  if (!Number.isInteger(failovers) || failovers < 0 || failovers > MAX_FAILOVERS)
    throw new UsageError(
      `--failovers is "${values.failovers}"; it must be a whole number from 0 to ${MAX_FAILOVERS}`,
    );
  return {
    seed: readSeed(values.seed, chosenSeed),
    failovers,
    ...(values.minutes !== undefined && { minutes: readMinutes(values.minutes) }),
    resume: values.resume,
    controls: !values['skip-controls'],
    keep: values.keep,
  };
}

function readSeed(given: string | undefined, chosenSeed: () => number): number {
  const seed = given === undefined ? chosenSeed() : Number(given);
  if (!Number.isInteger(seed) || seed < 0 || seed > MAX_SEED)
    throw new UsageError(`--seed is "${given}"; it must be a whole number from 0 to ${MAX_SEED}`);
  return seed;
}

function readMinutes(given: string): number {
  const minutes = Number(given);
  if (!(minutes > 0 && minutes <= MAX_MINUTES))
    throw new UsageError(`--minutes is "${given}"; it must be a number above 0, up to ${MAX_MINUTES}`);
  return minutes;
}

/** Undefined where help was asked for. */
export function readCommand(args: string[], chosenSeed: () => number): Command | undefined {
  const { values } = parseArgs({
    args,
    options: {
      seed: { type: 'string' },
      minutes: { type: 'string' },
      faults: { type: 'string' },
      scale: { type: 'string' },
      processes: { type: 'string' },
      json: { type: 'string' },
      keep: { type: 'boolean', default: false },
      'skip-controls': { type: 'boolean', default: false },
      journals: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const minutes = readMinutes(values.minutes ?? '1');
  const seed = readSeed(values.seed, chosenSeed);
  const scale = values.scale ?? 'full';
  if (scale !== 'full' && scale !== 'small')
    throw new UsageError(`--scale is "${values.scale}"; it must be full or small`);
  const processes = Number(values.processes ?? 1);
  if (!Number.isInteger(processes) || processes < 1 || processes > MAX_PROCESSES)
    throw new UsageError(
      `--processes is "${values.processes}"; it must be a whole number from 1 to ${MAX_PROCESSES}`,
    );
  const faults = readFaults(values.faults, processes);
  const alone = faults.find((fault) => processes === 1 && isOfProcesses(fault));
  if (alone !== undefined) throw new UsageError(`--faults: ${alone} needs --processes 2 or more`);
  return {
    seed,
    minutes,
    faults,
    scale,
    processes,
    keep: values.keep,
    controls: !values['skip-controls'],
    journals: values.journals,
    ...(values.json !== undefined && { json: values.json }),
  };
}

/** What repeats a run. */
export function commandLine(command: Command): string {
  const { seed, minutes, faults, scale, processes, keep, controls } = command;
  const isUsual = faults.join() === readFaults(undefined, processes).join();
  return [
    `npm run chaos -- --seed ${seed} --minutes ${minutes}`,
    ...(isUsual ? [] : [`--faults ${faults.length === 0 ? 'none' : faults.join()}`]),
    ...(scale === 'full' ? [] : [`--scale ${scale}`]),
    ...(processes === 1 ? [] : [`--processes ${processes}`]),
    ...(keep ? ['--keep'] : []),
    ...(keep && !controls ? ['--skip-controls'] : []),
  ].join(' ');
}

function readFaults(list: string | undefined, processes: number): readonly FaultName[] {
  if (list === undefined || list === 'all') return processes === 1 ? FAULTS : [...FAULTS, ...PROCESS_FAULTS];
  if (list === 'none') return [];
  return list.split(',').flatMap((text) => {
    if (text.trim() === 'neighbours') return NEIGHBOURS;
    if (text.trim() === 'stripe') return STRIPE_FAULTS;
    const fault = ALL_FAULTS.find((name) => name === text.trim());
    if (fault === undefined)
      throw new UsageError(
        `--faults: unknown fault "${text}"; known are ${ALL_FAULTS.join(', ')}, and neighbours and stripe for all of a kind`,
      );
    return fault;
  });
}
