// The whole suite: HTTP in, ticket out, everything running; beside the plain design and a Redis design in the same run.

import { machineSettings } from '../src/stack/postgres.ts';
import { THIS, versionsOf } from './neighbours/place.ts';
import { whole as digits } from './rows.ts';
import { isChosen, type Suite, type SuiteOptions } from './suite.ts';
import { withTemplates } from './templates.ts';
import { findTools } from './tools.ts';
import { measureTurns, type TurnsPlan } from './whole/cpu_turns.ts';
import { Crowd } from './whole/crowd.ts';
import { HELD_SETTINGS, type HeldPlan, heldRow, measureHeld } from './whole/held.ts';
import { type Load, measureWay, type Window } from './whole/measure.ts';
import { oursOf } from './whole/ours.ts';
import { plain } from './whole/plain.ts';
import { redis } from './whole/redis.ts';
import {
  CLAIMS_ONLY,
  CPU_ROW,
  demandsOf,
  HALF_ROW,
  HELD_ROW,
  rowOf,
  tableOf,
  type WholeRow,
} from './whole/rows.ts';
import { type OpenWay, OURS, type Way, withWays } from './whole/way.ts';

type Named = Load & { name: string };
type Plan = { loads: Named[]; half: Load; turns: TurnsPlan; held: HeldPlan };

const MINUTE = { windowSec: 60, followedPerSec: 20 };
const SMALL = 10_000;
/** Enough for ten minutes at 13,000 claims a second. */
const LARGE = 8_000_000;
const FULL: Plan = {
  loads: [
    { name: 'large-64', clients: 64, slots: LARGE, refill: false, windows: 10, ...MINUTE },
    { name: 'large-256', clients: 256, slots: LARGE / 2, refill: false, windows: 2, ...MINUTE },
    { name: 'small-64', clients: 64, slots: SMALL, refill: true, windows: 2, ...MINUTE },
    { name: 'small-256', clients: 256, slots: SMALL, refill: true, windows: 2, ...MINUTE },
  ],
  half: { clients: 64, slots: LARGE / 2, refill: false, windows: 2, ...MINUTE },
  turns: { rounds: 10, slots: LARGE / 4, turn: { clients: 64, windowSec: 10, followedPerSec: 20 } },
  held: { minutes: 30, ...MINUTE, perSec: 2_000, connections: 64, warmUpSec: 10 },
};
const MOMENT = { windowSec: 1, followedPerSec: 20 };
/** Shows that every way runs. */
const QUICK: Plan = {
  loads: [{ name: 'small-4', clients: 4, slots: 100, refill: true, windows: 1, ...MOMENT }],
  half: { clients: 4, slots: 20_000, refill: false, windows: 1, ...MOMENT },
  turns: { rounds: 1, slots: 40_000, turn: { clients: 4, ...MOMENT } },
  held: { minutes: 2, ...MOMENT, perSec: 100, connections: 4, warmUpSec: 1 },
};
/** Of what the way did at its best. */
const HALF = 0.5;
/** A minute more shows nothing of claims alone, and each message has to be carried before the next row. */
const CLAIMS_ONLY_WINDOWS = 2;
/** All of them wait until the worker goes on, and are looked for. */
const CLAIMS_ONLY_FOLLOWED_PER_SEC = 1;

/** As `npm start` has them: clusters of tests have less memory than the tables of this suite need. All designs get the same. */
const SETTINGS = machineSettings();

const ours = oursOf(THIS);
const TUNED = {
  [OURS]: ours.tuned,
  [CLAIMS_ONLY]: [
    'the same with a worker that stands still until the last claim: the best that HTTP claims do here',
  ],
  plain: plain.tuned,
  redis: redis.tuned,
};

const planOf = (quick: boolean): Plan => (quick ? QUICK : FULL);

export const whole: Suite = {
  summary: 'the whole way from HTTP to the ticket, beside the plain design and a Redis design',
  compares: true,
  hasMinutes: true,
  againstRows: [CPU_ROW],
  rowNames: (quick) => [...planOf(quick).loads.map(({ name }) => name), HALF_ROW, CPU_ROW, HELD_ROW],
  run: (options) =>
    withTemplates(async () => {
      const { wrk } = await findTools();
      const plan = planOf(options.quick);
      const crowd = new Crowd(wrk);
      try {
        const run = new Run(crowd, options);
        for (const load of plan.loads) if (isChosen(options, load.name)) await run.load(load);
        if (isChosen(options, HALF_ROW)) await run.half(plan.half);
        if (options.against !== undefined && isChosen(options, CPU_ROW)) await run.turns(plan.turns);
        const { minutes = plan.held.minutes } = options;
        if (isChosen(options, HELD_ROW)) await run.held({ ...plan.held, minutes });
        const { rows, settings } = run;
        return { settings, rows, demands: demandsOf(rows) };
      } finally {
        await crowd.end();
      }
    }),
  demands: (rows) => demandsOf(rows as readonly WholeRow[]),
  table: (rows) => tableOf(rows as readonly WholeRow[], TUNED),
};

class Run {
  readonly rows: WholeRow[] = [];
  settings: Record<string, string> = {};
  readonly #crowd: Crowd;
  readonly #options: SuiteOptions;

  constructor(crowd: Crowd, options: SuiteOptions) {
    this.#crowd = crowd;
    this.#options = options;
  }

  /** Each way, and our own claims alone. */
  async load(load: Named): Promise<void> {
    await this.#measure(ours, OURS, load);
    await this.#measure(ours, CLAIMS_ONLY, {
      ...load,
      windows: Math.min(CLAIMS_ONLY_WINDOWS, load.windows),
      followedPerSec: CLAIMS_ONLY_FOLLOWED_PER_SEC,
      claimsOnly: true,
    });
    for (const way of [plain, redis]) await this.#measure(way, way.name, load);
  }

  async #measure(way: Way, name: string, load: Named): Promise<void> {
    await this.#withOpen(way, {}, async (open) => {
      this.rows.push(rowOf(load, name, await this.#sell(open, load, `${load.name}: ${name}`)));
    });
  }

  /** What is possible, first; then half of it at a fixed pace. */
  async half(load: Load): Promise<void> {
    await this.#withOpen(ours, {}, async (open) => {
      const best = await this.#sell(open, { ...load, windows: 1 }, `${HALF_ROW}: the best rate`);
      const half = { ...load, slots: 0, perSec: halfOf(best.claims / best.drainedSeconds) };
      const measured = await this.#sell(open, half, `${HALF_ROW}: ${OURS}`);
      this.rows.push(rowOf({ ...half, slots: load.slots, name: HALF_ROW }, OURS, measured));
    });
  }

  async turns(plan: TurnsPlan): Promise<void> {
    const { against, progress } = this.#options;
    const ways = versionsOf(against).map(oursOf);
    await withWays(ways, SETTINGS, async (opened) => {
      const named = opened.map((open, at) => ({ name: ways[at]?.name ?? '', open }));
      this.rows.push(...(await measureTurns(named, this.#crowd, plan, progress)));
      for (const { world } of opened) this.settings = await world.db2.settings();
    });
  }

  /** The plain design may fall behind for good: only ours has to end what it began. */
  async held(plan: HeldPlan): Promise<void> {
    for (const way of [ours, plain]) {
      const progress = (line: string) => this.#options.progress(`${HELD_ROW}: ${way.name}: ${line}`);
      await this.#withOpen(way, HELD_SETTINGS, async (open) => {
        this.rows.push(
          heldRow(way.name, plan, await measureHeld(open, this.#crowd, plan, way === ours, progress)),
        );
      });
    }
  }

  #sell(open: OpenWay, load: Load, what: string) {
    const { progress } = this.#options;
    progress(what);
    const tell = (at: number, { claims, seconds }: Window) =>
      progress(`${what}: window ${at} of ${load.windows}, ${digits(claims / seconds)} claims a second`);
    return measureWay(open, this.#crowd, load, tell);
  }

  async #withOpen(
    way: Way,
    settings: Record<string, string>,
    use: (open: OpenWay) => Promise<void>,
  ): Promise<void> {
    const open = await way.open({ ...SETTINGS, ...settings });
    try {
      await use(open);
      this.settings = await open.world.db2.settings();
    } finally {
      await open.stop();
    }
  }
}

/** Claims a second, of tickets a second that were possible. */
export function halfOf(rate: number): number {
  return rate * HALF;
}
