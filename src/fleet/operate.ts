// What operators do with cells, over connections of their own: no server has to run for it.

import type { CallFunction } from '#core/call_function.ts';
import { inTime } from '#core/deadline.ts';
import { blameOf } from '#core/failure.ts';
import type { Log } from '#core/ports.ts';
import { createDatabase, REBUILD_TIMEOUT_MS } from '../db/database.ts';
import { StackError } from '../failure.ts';
import type { CellAddress } from './addresses.ts';
import { cellAway } from './away.ts';
import type { CellHere } from './directory.ts';
import { mergePlaces, type PlaceRow } from './directory.ts';
import { type Move, movePool } from './move.ts';

export interface OpenCell {
  readonly name: string;
  readonly call: CallFunction;
}

export interface CellState {
  readonly name: string;
  /** joined: it is the cell that it is said to be. */
  readonly state: 'joined' | 'draining' | 'not joined' | 'another cell' | 'away';
  readonly here?: CellHere;
}

const ANSWER_MS = 5_000;

export async function withCells<Result>(
  addresses: readonly CellAddress[],
  log: Log,
  work: (cells: readonly OpenCell[]) => Promise<Result>,
): Promise<Result> {
  const open = addresses.map(({ name, url }) => {
    // A million slots take minutes to pack.
    const callTimeoutMs = REBUILD_TIMEOUT_MS;
    const db = createDatabase({ url, max: 2, applicationName: 'sluice-cells', callTimeoutMs, log });
    const call: CallFunction = (functionName, args) => db.call(`public.${functionName}`, args);
    return { name, call, end: () => db.end() };
  });
  try {
    return await work(open);
  } finally {
    await Promise.all(open.map((cell) => cell.end()));
  }
}

export function lookAtCells(cells: readonly OpenCell[]): Promise<CellState[]> {
  return Promise.all(
    cells.map(async ({ name, call }): Promise<CellState> => {
      try {
        const [here] = await inTime(ANSWER_MS, call<CellHere>('cell_here', {}), () => new Error('late'));
        if (here === undefined) return { name, state: 'away' };
        const state = here.is_draining ? 'draining' : 'joined';
        return {
          name,
          here,
          state: here.name === name ? state : here.name === '' ? 'not joined' : 'another cell',
        };
      } catch {
        return { name, state: 'away' };
      }
    }),
  );
}

export function cellNamed(cells: readonly OpenCell[], name: string): OpenCell {
  const cell = cells.find((one) => one.name === name);
  if (cell !== undefined) return cell;
  const names = cells.map((one) => one.name).join(', ');
  throw new StackError(`unknown cell "${name}"`, `SLUICE_CELLS has ${names}`);
}

/**
 * The number is the cell's for life, also after it has left the list: all others have to say first which numbers they ever heard
 * of, and hear of this one.
 */
export async function addCell(cells: readonly OpenCell[], name: string, actor: string): Promise<CellHere> {
  const cell = cellNamed(cells, name);
  const states = await lookAtCells(cells);
  const [away] = states.filter(({ state }) => state === 'away');
  if (away !== undefined)
    throw new StackError(
      `cell ${away.name} does not answer`,
      'each cell has to say its number first; try again when it is back',
    );
  const known = states.find((one) => one.name === name)?.here;
  const numbers = states.flatMap(({ here }) => Object.values(here?.numbers ?? {}));
  const number = known?.name === name ? known.number : Math.max(-1, ...numbers) + 1;
  const [joined] = await cell.call<CellHere>('cell_join', { p_name: name, p_number: number, p_actor: actor });
  if (joined === undefined) throw new Error('cell_join gave no answer');
  const news = { p_names: [name], p_numbers: [joined.number], p_pool_ids: [], p_cells: [], p_versions: [] };
  await Promise.all(cells.map((other) => other !== cell && other.call('cell_learn', news)));
  return joined;
}

export type MoveOptions = Pick<Move, 'actor' | 'reason' | 'onStep' | 'onParcels'>;

/**
 * Moves the pool to the cell, or goes on with a move there that was cut short; 'there' where nothing is to do. The target must
 * be what it is said to be: a pool must not end in a database that no door asks.
 */
export async function moveTo(
  cells: readonly OpenCell[],
  poolId: string,
  to: string,
  options: MoveOptions,
): Promise<'moved' | 'there'> {
  const target = cellNamed(cells, to);
  const [state] = await lookAtCells([target]);
  if (state?.state !== 'joined')
    throw new StackError(
      `cell ${to} is ${state?.state}`,
      state?.state === 'not joined'
        ? `run \`sluice cells add ${to}\``
        : 'a pool moves to a cell that answers and takes pools',
    );
  const source = await sourceOf(cells, poolId, to);
  if (source === undefined) return 'there';
  await movePool({ ...options, poolId, to, source: source.call, target: target.call });
  return 'moved';
}

/** Undefined where the pool lives in `to` and no parcel of it is left elsewhere. */
async function sourceOf(
  cells: readonly OpenCell[],
  poolId: string,
  to: string,
): Promise<OpenCell | undefined> {
  const reports = new Map<string, PlaceRow[]>();
  await Promise.all(
    cells.map(async ({ name, call }) => {
      const asked = call<PlaceRow>('cell_directory', { p_pool_ids: [poolId] });
      const rows = await inTime(ANSWER_MS, asked, () => new Error('late')).catch(() => undefined);
      if (rows !== undefined) reports.set(name, rows);
    }),
  );
  for (const [name, rows] of reports)
    for (const { moving_to } of rows) {
      if (moving_to === to) return cellNamed(cells, name);
      if (moving_to !== null)
        throw new StackError(
          `pool ${poolId} is on its way to cell ${moving_to}`,
          `finish that first: sluice pools move ${poolId} --to ${moving_to}`,
        );
    }
  const place = mergePlaces(reports).places.get(poolId);
  if (place?.cell === to) return undefined;
  if (place !== undefined && reports.has(place.cell)) return cellNamed(cells, place.cell);
  const away = cells.filter(({ name }) => !reports.has(name)).map(({ name }) => name);
  if (away.length > 0)
    throw new StackError(
      `pool ${poolId} is in no cell that answers`,
      `cell ${away.join(', ')} does not answer; try again when it is back`,
    );
  throw new StackError(`unknown pool ${poolId}`, 'see `sluice pools list`');
}

export interface DrainResult {
  readonly pool_id: string;
  /** Where it went; undefined where it stays. */
  readonly to?: string;
  readonly why?: string;
}

/** The cell takes no new pools, and each pool that may be moved goes to the cell with the fewest. */
export async function drainCell(
  cells: readonly OpenCell[],
  name: string,
  options: MoveOptions,
  onPool: (result: DrainResult) => void,
): Promise<DrainResult[]> {
  const cell = cellNamed(cells, name);
  await cell.call('cell_drain', { p_actor: options.actor, p_reason: options.reason });
  const targets = (await lookAtCells(cells)).flatMap(({ state, here }) =>
    state === 'joined' && here ? [{ name: here.name, pools: here.pools }] : [],
  );
  const results: DrainResult[] = [];
  for (const row of await cell.call<PlaceRow>('cell_directory', {})) {
    if (!row.is_here && row.moving_to === null) continue;
    targets.sort((a, b) => a.pools - b.pools);
    const [best] = targets;
    const to = row.moving_to ?? best?.name;
    const result = await drainPool(cells, row.pool_id, to, options);
    const chosen = targets.find((one) => one.name === result.to);
    if (chosen !== undefined) chosen.pools++;
    results.push(result);
    onPool(result);
  }
  return results;
}

async function drainPool(
  cells: readonly OpenCell[],
  pool_id: string,
  to: string | undefined,
  options: MoveOptions,
): Promise<DrainResult> {
  if (to === undefined) return { pool_id, why: 'no other cell answers and takes pools' };
  try {
    await moveTo(cells, pool_id, to, options);
    return { pool_id, to };
  } catch (error) {
    // Refusals of our own functions are about this pool; anything else is about the cells.
    if (blameOf(error) !== 'refused' || !(error instanceof Error)) throw error;
    return { pool_id, why: error.message };
  }
}

/**
 * The cell in which the operators stand: the one with the lowest number, wherever the list names it. A number is a cell's for life, so
 * all programs find the same. Throws while a cell is away whose number no other cell knows, and where the database at the address is
 * another cell.
 */
export async function operatorsCell<Cell extends OpenCell>(cells: readonly Cell[]): Promise<Cell> {
  const [only] = cells;
  if (only !== undefined && cells.length === 1) return only;
  const states = await lookAtCells(cells);
  const known = Object.assign({}, ...states.map(({ here }) => here?.numbers)) as Record<string, number>;
  const numberOf = ({ name, here }: (typeof states)[number]) =>
    here?.name === name ? here.number : known[name];
  // One that has not joined gets a higher number than all others.
  const members = states.filter(({ state }) => state !== 'not joined');
  const unsure = members.filter((one) => numberOf(one) === undefined);
  if (unsure.length > 0) throw cellAway(unsure.map(({ name }) => name));
  const [lowest] = members.sort((a, b) => Number(numberOf(a)) - Number(numberOf(b)));
  const found = cells.find(({ name }) => name === lowest?.name);
  if (lowest === undefined || found === undefined)
    throw new StackError(
      'no database of SLUICE_CELLS is a cell yet',
      'run `sluice cells add <name>` for each',
    );
  if (lowest.state === 'another cell')
    throw new StackError(
      `the database of cell ${lowest.name} is another cell`,
      'compare SLUICE_CELLS with `sluice cells list`',
    );
  return found;
}

/** For programs that go on: it is looked for until it was found once. */
export function findOperatorsCell<Cell extends OpenCell>(cells: readonly Cell[]): () => Promise<Cell> {
  let found: Promise<Cell> | undefined;
  return () => {
    found ??= operatorsCell(cells).catch((error: unknown) => {
      found = undefined;
      throw error;
    });
    return found;
  };
}

/** A row of public.cell_left. */
export interface CellLeft {
  readonly messages: number;
  readonly dead_letters: number;
  readonly deliveries: number;
  readonly inbox_dead_letters: number;
  /** 0 where the operators stand in another cell. */
  readonly operators: number;
}

/** What the cell has beside its pools, which would be lost with it. */
export async function leftIn(cells: readonly OpenCell[], name: string): Promise<CellLeft> {
  const cell = cellNamed(cells, name);
  const [left] = await cell.call<CellLeft>('cell_left', {});
  if (left === undefined) throw new Error('cell_left gave no answer');
  return (await operatorsCell(cells)) === cell ? left : { ...left, operators: 0 };
}
