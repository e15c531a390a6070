// CPU of a claim over HTTP, here and in another checkout: both stand side by side and sell in turns, and their workers stand still.

import { endedUs, spentOn } from '../cpu.ts';
import { versionsOf } from '../neighbours/place.ts';
import { median } from '../stats.ts';
import type { Row, SuiteOptions } from '../suite.ts';
import { withTemplates } from '../templates.ts';
import { cpuRatio, partsOfTurns, sumOfParts, type Turn, takeTurns, textOfParts } from '../turns.ts';
import { oursOf } from '../whole/ours.ts';
import { cpuOf, type OpenWay, POOL, withWays } from '../whole/way.ts';
import { runWrk, sampleOfWrk } from '../wrk/wrk.ts';

export const HTTP_CPU = 'http-cpu';

type Plan = { rounds: number; seconds: number; clients: readonly number[]; slots: number };
type Played = ReturnType<typeof sampleOfWrk> & { loadUs: number };

const FULL: Plan = { rounds: 8, seconds: 5, clients: [64, 256], slots: 3_000_000 };
/** Shows that it runs. */
const QUICK: Plan = { rounds: 1, seconds: 1, clients: [8], slots: 100_000 };

export function measureHttpCpu(wrk: string, { quick, against, progress }: SuiteOptions): Promise<Row[]> {
  const plan = quick ? QUICK : FULL;
  const ways = versionsOf(against).map(oursOf);
  return withTemplates(() =>
    withWays(ways, {}, async (open) => {
      progress(`${HTTP_CPU}: ${plan.slots} slots for each of ${ways.map(({ name }) => name).join(' and ')}`);
      for (const way of open) {
        way.worker?.stall();
        await way.addSlots(plan.slots);
        await way.world.db1.run('vacuum (analyze)');
      }
      const rows: Row[] = [];
      for (const clients of plan.clients) {
        const sellers = open.map(
          (way, at) => new Seller(ways[at]?.name ?? '', way, wrk, clients, plan.seconds),
        );
        for (const seller of sellers) await seller.warmUp();
        const turns = await takeTurns(sellers, plan.rounds, (name, round) =>
          progress(`${HTTP_CPU}, ${clients} connections, round ${round} of ${plan.rounds}: ${name}`),
        );
        const ours = turns.get(sellers[0]?.name ?? '') ?? [];
        for (const seller of sellers) rows.push(await seller.row(turns.get(seller.name) ?? [], ours, plan));
      }
      return rows;
    }),
  );
}

class Seller {
  readonly name: string;
  readonly #way: OpenWay;
  readonly #wrk: string;
  readonly #clients: number;
  readonly #seconds: number;
  #played: Played[] = [];
  #walBefore = 0;

  constructor(name: string, way: OpenWay, wrk: string, clients: number, seconds: number) {
    this.name = name;
    this.#way = way;
    this.#wrk = wrk;
    this.#clients = clients;
    this.#seconds = seconds;
  }

  cpuUs(): Record<string, number> {
    return cpuOf(this.#way);
  }

  async warmUp(): Promise<void> {
    await this.play();
    this.#played = [];
    this.#walBefore = await this.#way.world.db1.walBytes();
  }

  async play(): Promise<number> {
    const before = endedUs();
    const result = await runWrk({
      wrk: this.#wrk,
      script: 'claim.lua',
      args: [`/v1/pools/${POOL}/claims`, `${process.pid}_${Date.now()}`],
      url: `http://127.0.0.1:${this.#way.port}`,
      connections: this.#clients,
      seconds: this.#seconds,
    });
    const sample = { ...sampleOfWrk(result), loadUs: endedUs() - before };
    if (sample.refused + sample.broken > 0)
      throw new Error(`${this.name}: ${sample.refused} claims refused, ${sample.broken} without an answer`);
    this.#played.push(sample);
    return sample.ops;
  }

  async row(turns: readonly Turn[], ours: readonly Turn[], plan: Plan): Promise<Row> {
    const of = (pick: (one: Played) => number) => this.#played.map(pick);
    const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);
    const [ops, rates] = [sum(of((one) => one.ops)), of(({ rate }) => rate)];
    const parts = partsOfTurns(turns);
    return {
      ...{ name: HTTP_CPU, version: this.name, clients: this.#clients, batch: 1 },
      ...{ slots: plan.slots, max_sec: plan.seconds, repetitions: turns.length, ops },
      ...{ rate: median(rates), rate_min: Math.min(...rates), rate_max: Math.max(...rates) },
      p50_ms: median(of((one) => one.p50_ms)),
      p99_ms: median(of((one) => one.p99_ms)),
      wal_bytes_per_op: ((await this.#way.world.db1.walBytes()) - this.#walBefore) / ops,
      ...spentOn(ops, sumOfParts(parts), sum(of(({ loadUs }) => loadUs))),
      parts: textOfParts(parts, ops),
      ...(turns !== ours && { cpu_ratio: cpuRatio(turns, ours) }),
    };
  }
}
