// CPU of a claim the whole way, here and in another checkout: both stand side by side and sell in short turns. A turn ends when the
// ledger has its last ticket.

import { median } from '../stats.ts';
import { cpuRatio, partsOfTurns, type Turn, takeTurns } from '../turns.ts';
import type { Crowd } from './crowd.ts';
import { type Load, type Measured, measureWay } from './measure.ts';
import { CPU_ROW, rowOf, type WholeRow } from './rows.ts';
import { cpuOf, type OpenWay } from './way.ts';

export type TurnsPlan = { rounds: number; slots: number; turn: Omit<Load, 'slots' | 'refill' | 'windows'> };

/** The first of the ways is ours. */
export async function measureTurns(
  ways: readonly { name: string; open: OpenWay }[],
  crowd: Crowd,
  plan: TurnsPlan,
  progress: (line: string) => void,
): Promise<WholeRow[]> {
  for (const { open } of ways) {
    await open.addSlots(plan.slots);
    await open.world.db1.run('vacuum (analyze)');
  }
  const load: Load = { ...plan.turn, slots: 0, refill: false, windows: 1 };
  const sellers = ways.map(({ name, open }) => sellerOf(name, open, crowd, load));
  for (const { play, measured } of sellers) {
    await play();
    // Node had to compile what is measured.
    measured.length = 0;
  }
  const turns = await takeTurns(sellers, plan.rounds, (name, round) =>
    progress(`${CPU_ROW}: round ${round} of ${plan.rounds}: ${name}`),
  );
  const ours = turns.get(sellers[0]?.name ?? '') ?? [];
  return sellers.map(({ name, measured }) => {
    const taken = turns.get(name) ?? [];
    const row = rowOf({ ...load, slots: plan.slots, name: CPU_ROW }, name, together(measured, taken));
    return taken === ours ? row : { ...row, cpu_ratio: cpuRatio(taken, ours) };
  });
}

function sellerOf(name: string, way: OpenWay, crowd: Crowd, load: Load) {
  const measured: Measured[] = [];
  return {
    name,
    measured,
    cpuUs: () => cpuOf(way),
    async play(): Promise<number> {
      const one = await measureWay(way, crowd, load);
      measured.push(one);
      return one.claims;
    },
  };
}

/** All turns as one run; its CPU is that of the turns, with what came between them. */
export function together(measured: readonly Measured[], turns: readonly Turn[]): Measured {
  const sum = (pick: (one: Measured) => number) => measured.reduce((all, one) => all + pick(one), 0);
  const of = (pick: (one: Measured) => number) => measured.map(pick);
  return {
    claims: sum((one) => one.claims),
    refused: sum((one) => one.refused),
    seconds: sum((one) => one.seconds),
    drainedSeconds: sum((one) => one.drainedSeconds),
    tickets: sum((one) => one.tickets),
    claimP50Ms: median(of((one) => one.claimP50Ms)),
    claimP99Ms: Math.max(...of((one) => one.claimP99Ms)),
    ticketP50Ms: median(of((one) => one.ticketP50Ms)),
    ticketP99Ms: Math.max(...of((one) => one.ticketP99Ms)),
    partsUs: partsOfTurns(turns),
    loadUs: sum((one) => one.loadUs),
    walBytes: sum((one) => one.walBytes),
    bloat: measured.at(-1)?.bloat ?? { bytes: 0, deadRows: 0 },
    windows: measured.flatMap(({ windows }) => windows),
  };
}
