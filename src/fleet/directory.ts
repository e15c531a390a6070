// Where pools live, made of what the cells say. What a cell says about its own pools is the truth; what it says about the pools
// of a cell that does not answer is the best that is known. Pure.

/** A row of public.cell_here. */
export interface CellHere {
  readonly name: string;
  readonly number: number;
  readonly is_draining: boolean;
  readonly pools: number;
  readonly slots: number;
  readonly moving: number;
  /** Of each cell that this one ever heard of, itself among them, by its name. */
  readonly numbers: Readonly<Record<string, number>>;
}

/** A row of public.cell_directory. */
export interface PlaceRow {
  readonly pool_id: string;
  readonly cell: string;
  readonly version: number;
  readonly moving_to: string | null;
  readonly is_here: boolean;
  readonly digits: string;
}

export interface Place {
  readonly cell: string;
  readonly version: number;
  /** It is in parcels: no cell sells it until this one has unpacked it. */
  readonly movingTo?: string;
  readonly digits: string;
}

/** What each cell said, by its name; a cell that did not answer is not in it. */
export type Reports = ReadonlyMap<string, readonly PlaceRow[]>;

export interface Merged {
  readonly places: ReadonlyMap<string, Place>;
  /** Pools that two cells say to have, with those cells: they were made by hand. */
  readonly doubles: ReadonlyMap<string, readonly string[]>;
}

const NO_ROWS: readonly PlaceRow[] = [];

export function mergePlaces(reports: Reports): Merged {
  const places = new Map<string, Place>();
  const doubles = new Map<string, string[]>();
  for (const [cell, rows] of reports)
    for (const { pool_id, version, is_here, digits } of rows) {
      if (!is_here) continue;
      const known = places.get(pool_id);
      if (known !== undefined && known.version === version)
        doubles.set(pool_id, [...(doubles.get(pool_id) ?? [known.cell]), cell]);
      if (known === undefined || known.version < version) places.set(pool_id, { cell, version, digits });
    }
  // A target that has unpacked it has the version that the source packed.
  for (const [cell, rows] of reports)
    for (const { pool_id, version, moving_to, digits } of rows)
      if (moving_to !== null && version > (places.get(pool_id)?.version ?? 0))
        places.set(pool_id, { cell, version, movingTo: moving_to, digits });
  // A copy counts where the cell that it names has not spoken for itself.
  for (const rows of reports.values())
    for (const { pool_id, cell, version, is_here, moving_to, digits } of rows)
      if (
        !is_here &&
        moving_to === null &&
        !reports.has(cell) &&
        version > (places.get(pool_id)?.version ?? 0)
      )
        places.set(pool_id, { cell, version, digits });
  return { places, doubles };
}

/** The entries that the cell has no copy of, or an older one. */
export function lacking(
  cell: string,
  reports: Reports,
  places: Merged['places'],
): { poolId: string; place: Place }[] {
  const known = new Map((reports.get(cell) ?? NO_ROWS).map((row) => [row.pool_id, row]));
  return [...places]
    .filter(([poolId, place]) => {
      const row = known.get(poolId);
      return (
        place.cell !== cell &&
        place.movingTo === undefined &&
        (row === undefined || (row.moving_to === null && !row.is_here && row.version < place.version))
      );
    })
    .map(([poolId, place]) => ({ poolId, place }));
}
