// Two or more that stand side by side take short turns, A B A B …, because the speed of a shared machine changes within seconds.

import { median } from './stats.ts';

export type Player = {
  name: string;
  /** CPU that its parts have used so far. */
  cpuUs(): Record<string, number>;
  /** One turn; resolves with how many operations it did when nothing of it is under way any more. */
  play(): Promise<number>;
};

/** A turn's CPU counts until the player's next turn: what it puts off, such as a vacuum, is its own too. So is its idling. */
export type Turn = { ops: number; partsUs: Record<string, number> };

export async function takeTurns(
  players: readonly Player[],
  rounds: number,
  onTurn: (name: string, round: number) => void = () => undefined,
): Promise<Map<string, Turn[]>> {
  const marks = players.map(() => [] as Record<string, number>[]);
  const ops = players.map(() => [] as number[]);
  for (let round = 1; round <= rounds; round++)
    for (const [at, player] of players.entries()) {
      onTurn(player.name, round);
      marks[at]?.push(player.cpuUs());
      ops[at]?.push(await player.play());
    }
  for (const [at, player] of players.entries()) marks[at]?.push(player.cpuUs());
  return new Map(
    players.map(({ name }, at) => [
      name,
      (ops[at] ?? []).map((done, turn) => ({
        ops: done,
        partsUs: difference(marks[at]?.[turn + 1] ?? {}, marks[at]?.[turn] ?? {}),
      })),
    ]),
  );
}

function difference(after: Record<string, number>, before: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(after).map(([part, us]) => [part, us - (before[part] ?? 0)]));
}

export const sumOfParts = (partsUs: Record<string, number>): number =>
  Object.values(partsUs).reduce((sum, us) => sum + us, 0);

/** Of one operation, in whole microseconds: "server 30 db1 40". */
export const textOfParts = (partsUs: Record<string, number>, ops: number): string =>
  Object.entries(partsUs)
    .map(([part, us]) => `${part} ${Math.round(us / ops)}`)
    .join(' ');

/** Of all turns together. */
export const partsOfTurns = (turns: readonly Turn[]): Record<string, number> =>
  Object.fromEntries(
    Object.keys(turns[0]?.partsUs ?? {}).map((part) => [
      part,
      turns.reduce((all, { partsUs }) => all + (partsUs[part] ?? 0), 0),
    ]),
  );

const costOf = ({ ops, partsUs }: Turn): number => sumOfParts(partsUs) / ops;

/** How many times as much CPU an operation of theirs takes: round by round, the median. */
export function cpuRatio(theirs: readonly Turn[], ours: readonly Turn[]): number {
  if (theirs.length !== ours.length || ours.length === 0)
    throw new Error(`${theirs.length} turns against ${ours.length}`);
  return median(ours.map((turn, at) => costOf(theirs[at] as Turn) / costOf(turn)));
}
