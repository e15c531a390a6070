// Several intakes as one: which cell a pool or a claim is in, and which cells answer. With one cell every question goes to it, and
// none is asked besides, until it misses something: then it says once whether it has ever heard of other cells.

import type { CallFunction } from '#core/call_function.ts';
import { Coalescer } from '#core/coalescer.ts';
import { HttpError } from '#core/errors.ts';
import type { Log } from '#core/ports.ts';
import { type Loop, startTurns } from '../loop.ts';
import {
  answerOf,
  cellAway,
  isAway,
  isLate,
  isNotUnknownClaim,
  isUnknownPool,
  strangerText,
} from './away.ts';
import { type CellHere, lacking, mergePlaces, type Place, type PlaceRow } from './directory.ts';
import { Waiting } from './waiting.ts';

/** `watch` calls functions of schema public on a connection that nothing else waits for. */
export interface FleetCell {
  readonly name: string;
  readonly watch: CallFunction;
}

export interface Answered<Cell, Answer> {
  readonly answers: readonly (readonly [cell: Cell, answer: Answer])[];
  /** The names of the cells that did not answer. */
  readonly away: readonly string[];
}

/** A cell that is late so many times in a row is away: its requests are refused at once, until it answers again. */
const MISSES_TO_BE_AWAY = 2;
const LOOK_EVERY_MS = 1_000;
/** A miss asks at once; this is for the copies that the cells keep of each other. */
const LOOKS_A_READING = 5;
/** The digits of the pool in the id of a claim, behind the time and the version (intake.pool_digits). */
const DIGITS = [15, 18] as const;
const NO_NAMES: ReadonlySet<string> = new Set();

interface LookedUp {
  /** Left out where no cell has the pool, or one that may have it does not answer. */
  readonly place?: Place;
  /** What a copy says of a cell that answers and does not have it: the pool was to be made there. */
  readonly meantFor?: string;
  readonly away: readonly string[];
}

export class Fleet<Cell extends FleetCell> {
  readonly cells: readonly Cell[];
  readonly #log: Log;
  readonly #byName: ReadonlyMap<string, Cell>;
  /** By name: why the cell is not asked. */
  readonly #away = new Map<string, string>();
  readonly #here = new Map<string, CellHere>();
  /** Looks in a row that a cell did not answer. */
  readonly #misses = new Map<string, number>();
  readonly #waiting = new Waiting();
  readonly #reports = new Map<string, readonly PlaceRow[]>();
  #places: ReadonlyMap<string, Place> = new Map();
  #cellsOfDigits = new Map<string, Set<string>>();
  #doubles = '';
  /** With one cell: whether its directory names no other. */
  #alone: Promise<boolean> | undefined;
  readonly #lookUps: Coalescer<string, LookedUp>;
  #loops: Loop[] = [];

  constructor(cells: readonly Cell[], log: Log) {
    this.cells = cells;
    this.#log = log;
    this.#byName = new Map(cells.map((cell) => [cell.name, cell]));
    this.#lookUps = new Coalescer((poolIds) => this.#lookUp(poolIds));
  }

  get isOne(): boolean {
    return this.cells.length === 1;
  }

  /** Where there is one cell. */
  get only(): Cell {
    return this.cells[0] as Cell;
  }

  /** The cells that do not answer, as far as is known. */
  get away(): readonly string[] {
    return [...this.#away.keys()];
  }

  /** What each cell that answers says about itself. */
  get here(): ReadonlyMap<string, CellHere> {
    return this.#here;
  }

  get places(): ReadonlyMap<string, Place> {
    return this.#places;
  }

  /** Reads the directory, and keeps it; with one cell it does nothing. Cells that are away are waited for for two seconds. */
  async start(): Promise<void> {
    if (this.isOne) return;
    await Promise.all(this.cells.map((cell) => this.#look(cell, true)));
    await this.#share();
    this.#loops = this.cells.map((cell) => {
      let looks = 0;
      return startTurns(LOOK_EVERY_MS, async () => {
        looks = (looks + 1) % LOOKS_A_READING;
        await this.#look(cell, looks === 0);
        if (looks === 0) await this.#share();
      });
    });
  }

  /** Asks each cell what it says about itself now: an operator may have begun to drain one within the last second. */
  async lookAgain(): Promise<void> {
    await Promise.all(this.cells.map((cell) => this.#look(cell, false)));
  }

  async stop(): Promise<void> {
    await this.#lookUps.drain();
    await Promise.all(this.#loops.map((loop) => loop.stop()));
  }

  /** Throws for an unknown name. */
  named(name: string): Cell {
    const cell = this.#byName.get(name);
    if (cell === undefined)
      throw new HttpError(
        'invalid_input',
        `The cell "${name}" is unknown; there are ${[...this.#byName.keys()].join(', ')}.`,
      );
    return cell;
  }

  /** Throws 503 where it is away, or is not the cell that it is said to be. */
  answering(name: string): Cell {
    const cell = this.#byName.get(name);
    if (cell === undefined || this.#away.has(name)) throw cellAway([name]);
    return cell;
  }

  /**
   * The cell that the pool lives in, undefined if the pool does not exist. `notIn` has just answered that it has no such pool.
   * Throws 503 while the cell, or one that may have the pool, is away, and while the pool is being moved.
   */
  cellOf(poolId: string, notIn?: string): Cell | undefined | Promise<Cell | undefined> {
    if (this.isOne) return notIn === undefined ? this.only : this.#leftOver(poolId, notIn);
    const place = this.#places.get(poolId);
    if (place === undefined || place.cell === notIn || place.movingTo !== undefined)
      return this.#lookedUp(poolId, notIn);
    return this.answering(place.cell);
  }

  /**
   * For one who makes a pool: the cell that it lives in, or was to be made in, as far as the cells that answer know. Throws 503 where
   * they know that it lives in a cell that is away. A cell that is away may have a pool that none of them has heard of: that
   * does not keep the others from making pools.
   */
  async knownCellOf(poolId: string): Promise<{ readonly lives?: Cell; readonly meantFor?: Cell }> {
    const { place, meantFor } = await this.#lookUps.submit(poolId);
    if (place?.movingTo !== undefined) throw new HttpError('pool_moving');
    if (place !== undefined) return { lives: this.answering(place.cell) };
    return meantFor === undefined ? {} : { meantFor: this.answering(meantFor) };
  }

  /** All other cells that answer know from now on that the pool lives there: if that cell is lost, its name is still taken. */
  async tellPlace(poolId: string, { name }: Cell): Promise<void> {
    const others = this.cells.filter((cell) => cell.name !== name && !this.#away.has(cell.name));
    await Promise.all(
      others.map((cell) => this.#teach(cell, [{ poolId, place: { cell: name, version: 1 } }])),
    );
  }

  /** Asks the cell of the pool, and where that has none any more the cell that the pool has moved to. */
  async onPool<Answer>(
    poolId: string,
    ask: (cell: Cell) => Promise<Answer>,
    isMissing: (answer: Answer) => boolean,
  ): Promise<Answer | undefined> {
    const cell = await this.cellOf(poolId);
    if (cell === undefined) return undefined;
    const asked = ask(cell);
    if (!(await asked.then(isMissing, isUnknownPool))) return asked;
    const now = await this.cellOf(poolId, cell.name);
    return now === undefined ? asked : ask(now);
  }

  /**
   * Asks the cells for a claim, first those that its id leads to, until one knows it. Throws 503 where none does and one that may
   * know it is away, or a pool is between two cells.
   */
  async onClaim<Answer>(
    claimId: string,
    ask: (cell: Cell) => Promise<Answer | undefined>,
  ): Promise<Answer | undefined> {
    if (this.isOne) return this.#askOnly(claimId, ask);
    const likely = this.#namesOf(claimId);
    const first = this.cells.filter(({ name }) => likely.has(name));
    const rest = this.cells.filter((cell) => !first.includes(cell));
    for (const cells of [first, rest]) {
      const { found } = await this.#find(cells, ask);
      if (found !== undefined) return found;
    }
    const { answers, away } = await this.all((cell) => cell.watch<CellHere>('cell_here', {}));
    if (away.length > 0) throw cellAway(away);
    if (answers.some(([, [here]]) => (here?.moving ?? 0) > 0)) throw new HttpError('pool_moving');
    // A pool may have moved between two questions: now none is moving, so its claims are somewhere.
    const again = await this.#find(this.cells, ask);
    if (again.found === undefined && again.away.length > 0) throw cellAway(again.away);
    if (again.found === undefined) this.#refuseLost(claimId);
    return again.found;
  }

  /** The cell that the id of a claim leads to; the first one where it leads to none. */
  likely(claimId: string): Cell {
    const likely = this.#namesOf(claimId);
    return this.cells.find(({ name }) => likely.has(name)) ?? this.only;
  }

  /**
   * Asks every cell, or those that are given. One that is away, or is found away before it has answered, is left out and named; any
   * other failure is thrown.
   */
  async all<Answer>(
    ask: (cell: Cell) => Promise<Answer>,
    cells = this.cells,
  ): Promise<Answered<Cell, Answer>> {
    const away: string[] = [];
    const answers = await Promise.all(
      cells.map(async (cell) => {
        try {
          if (this.#away.has(cell.name)) throw cellAway([cell.name]);
          return [[cell, await this.#waiting.for(cell.name, ask(cell))] as const];
        } catch (error) {
          if (!isAway(error)) throw error;
          away.push(cell.name);
          return [];
        }
      }),
    );
    return { answers: answers.flat(), away };
  }

  /** The names of the cells that have a pool with the digits of the id, also of cells that are not in the list any more. */
  #namesOf(claimId: string): ReadonlySet<string> {
    return this.#cellsOfDigits.get(claimId.slice(...DIGITS).toLowerCase()) ?? NO_NAMES;
  }

  /** No cell knows the claim. Throws 503 where one that is not in the list any more may know it. */
  #refuseLost(claimId: string): void {
    const lost = [...this.#namesOf(claimId)].filter((name) => !this.#byName.has(name));
    if (lost.length > 0) throw cellAway(lost);
  }

  async #askOnly<Answer>(
    claimId: string,
    ask: (cell: Cell) => Promise<Answer | undefined>,
  ): Promise<Answer | undefined> {
    const asked = ask(this.only);
    const isFound = await asked.then((answer) => answer !== undefined, isNotUnknownClaim);
    if (!isFound && !(await this.#isAlone())) this.#refuseLost(claimId);
    return asked;
  }

  /** The only cell has no such pool: it may be one of a cell that is not in the list any more. */
  async #leftOver(poolId: string, notIn: string): Promise<Cell | undefined> {
    return (await this.#isAlone()) ? undefined : this.#lookedUp(poolId, notIn);
  }

  #isAlone(): Promise<boolean> {
    this.#alone ??= this.#readAlone().catch((error: unknown) => {
      this.#alone = undefined;
      throw error;
    });
    return this.#alone;
  }

  async #readAlone(): Promise<boolean> {
    const rows = await this.only.watch<PlaceRow>('cell_directory', {});
    this.#keep(mergePlaces(new Map([[this.only.name, rows]])).places);
    return rows.every((row) => row.is_here);
  }

  async #find<Answer>(
    cells: readonly Cell[],
    ask: (cell: Cell) => Promise<Answer | undefined>,
  ): Promise<{ found?: Answer; away: readonly string[] }> {
    const { answers, away } = await this.all(
      (cell) =>
        ask(cell).catch((error: unknown) => {
          if (isNotUnknownClaim(error)) throw error;
          return undefined;
        }),
      cells,
    );
    const found = answers.map(([, answer]) => answer).find((answer) => answer !== undefined);
    return { ...(found !== undefined && { found }), away };
  }

  async #lookedUp(poolId: string, notIn: string | undefined): Promise<Cell | undefined> {
    const { place, away } = await this.#lookUps.submit(poolId);
    if (place === undefined && away.length > 0) throw cellAway(away);
    if (place?.movingTo !== undefined) throw new HttpError('pool_moving');
    if (place === undefined || place.cell === notIn) return undefined;
    return this.answering(place.cell);
  }

  /** Asks all cells for some pools at once. */
  async #lookUp(poolIds: string[]): Promise<LookedUp[]> {
    const { answers, away } = await this.all((cell) =>
      answerOf(cell, cell.watch<PlaceRow>('cell_directory', { p_pool_ids: poolIds })),
    );
    const { places } = mergePlaces(new Map(answers.map(([{ name }, rows]) => [name, rows])));
    if (places.size > 0) this.#keep(new Map([...this.#places, ...places]));
    const copies = new Map(answers.flatMap(([, rows]) => rows.map(({ pool_id, cell }) => [pool_id, cell])));
    return poolIds.map((poolId) => {
      const place = places.get(poolId);
      const meantFor = copies.get(poolId);
      return { ...(place ? { place } : meantFor !== undefined && { meantFor }), away };
    });
  }

  async #look(cell: Cell, isReading: boolean): Promise<void> {
    const { name } = cell;
    try {
      const [here] = await answerOf(cell, cell.watch<CellHere>('cell_here', {}));
      if (here?.name !== name) throw new Error(strangerText(name, here?.name ?? ''));
      const rows = isReading ? await answerOf(cell, cell.watch<PlaceRow>('cell_directory', {})) : undefined;
      this.#here.set(name, here);
      if (rows !== undefined) this.#reports.set(name, rows);
      this.#misses.delete(name);
      if (this.#away.delete(name)) this.#log.info('a cell answers again', { cell: name });
    } catch (error) {
      const misses = (this.#misses.get(name) ?? 0) + 1;
      this.#misses.set(name, misses);
      // Late once may be this process, or a machine that is busy: a cell that has answered before has a second chance.
      if (isLate(error) && misses < MISSES_TO_BE_AWAY && this.#here.has(name)) return;
      this.#here.delete(name);
      this.#reports.delete(name);
      if (!this.#away.has(name))
        this.#log.error('a cell is away; its pools are not sold', { cell: name, cause: error });
      this.#away.set(name, error instanceof Error ? error.message : String(error));
      this.#waiting.giveUp(name, cellAway([name]));
    }
  }

  /** Puts together what the cells said, and gives each a copy of what it lacks. */
  async #share(): Promise<void> {
    const { places, doubles } = mergePlaces(this.#reports);
    this.#keep(places);
    const doubled = [...doubles].map(([pool, cells]) => `${pool} (${cells.join(', ')})`).join('; ');
    if (doubled !== '' && doubled !== this.#doubles)
      this.#log.error('pools of one name are in several cells, and only the first is sold', {
        pools: doubled,
      });
    this.#doubles = doubled;
    await Promise.all(
      this.cells.map(async (cell) => {
        const some = this.#reports.has(cell.name) ? lacking(cell.name, this.#reports, places) : [];
        if (some.length > 0) await this.#teach(cell, some);
      }),
    );
  }

  async #teach(
    cell: Cell,
    some: readonly { readonly poolId: string; readonly place: Pick<Place, 'cell' | 'version'> }[],
  ): Promise<void> {
    const names = [...this.#here.values()];
    const learning = cell.watch('cell_learn', {
      p_pool_ids: some.map(({ poolId }) => poolId),
      p_cells: some.map(({ place }) => place.cell),
      p_versions: some.map(({ place }) => place.version),
      p_names: names.map(({ name }) => name),
      p_numbers: names.map(({ number }) => number),
    });
    await learning.catch((cause: unknown) =>
      this.#log.warn('a cell has not learnt where pools live', { cell: cell.name, cause }),
    );
  }

  #keep(places: ReadonlyMap<string, Place>): void {
    this.#places = places;
    this.#cellsOfDigits = new Map();
    for (const { cell, digits } of places.values()) {
      const cells = this.#cellsOfDigits.get(digits);
      if (cells === undefined) this.#cellsOfDigits.set(digits, new Set([cell]));
      else cells.add(cell);
    }
  }
}
