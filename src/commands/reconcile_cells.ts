// What `sluice reconcile` asks of all cells at once.

import type { Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import type { CellHere } from '../fleet/directory.ts';

/** Rows of all cells. Each must answer: a ticket or a session of a cell that is away would look as if nothing belonged to it. */
export async function fromAll<Row>(
  intakes: readonly Database[],
  functionName: string,
  args: Record<string, unknown>,
): Promise<Row[]> {
  return (await Promise.all(intakes.map((db1) => db1.call<Row>(`public.${functionName}`, args)))).flat();
}

/** The claims and sessions of a pool in parcels are in no cell, and each would look like a difference. */
export async function refuseMoving(intakes: readonly Database[]): Promise<void> {
  const rows = await fromAll<CellHere>(intakes, 'cell_here', {});
  if (rows.some(({ moving }) => moving > 0))
    throw new StackError('a pool is between two cells', 'finish its move first: `sluice pools move`');
}
