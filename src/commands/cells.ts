// `sluice cells`: several intakes as one.

import { toHttpError } from '#core/failure.ts';
import { StackError } from '../failure.ts';
import { CELL_VARIABLES } from '../fleet/addresses.ts';
import {
  addCell,
  type CellLeft,
  drainCell,
  leftIn,
  lookAtCells,
  type OpenCell,
  withCells,
} from '../fleet/operate.ts';
import { createLog } from '../log.ts';
import { action, type Group } from './grammar.ts';
import { actor, listAction, OPTION, readDatabaseUrls, VARIABLES } from './operator.ts';
import { formatTable } from './table.ts';

/** What a database refuses is told in two lines. */
export async function onCells(work: (cells: readonly OpenCell[]) => Promise<number>): Promise<number> {
  const { cells } = readDatabaseUrls(process.env);
  if (cells.length === 0)
    throw new StackError('SLUICE_CELLS is not set, and no stack runs here', 'see docs/fleet.md');
  try {
    return await withCells(cells, createLog(), work);
  } catch (error) {
    if (error instanceof StackError) throw error;
    const { kind, hint } = toHttpError(error);
    if (kind.code === 'internal') throw error;
    const { message, hint: said } = error as { message: string; hint?: string };
    throw new StackError(message, said ?? hint, error);
  }
}

async function list(json: boolean): Promise<number> {
  return onCells(async (cells) => {
    const states = await lookAtCells(cells);
    if (json) console.log(JSON.stringify({ items: states }));
    else
      console.log(
        formatTable(
          ['CELL', 'STATE', 'NUMBER', 'POOLS', 'SLOTS', 'MOVING'],
          states.map(({ name, state, here }) => [
            name,
            state,
            ...(here ? [here.number, here.pools, here.slots, here.moving].map(String) : ['-', '-', '-', '-']),
          ]),
        ),
      );
    // A fleet of one belongs to none.
    const isWell = states.every(
      ({ state }) => state === 'joined' || (states.length === 1 && state === 'not joined'),
    );
    return isWell ? 0 : 1;
  });
}

const add = action({
  about: `Make a database a cell of the fleet

Name it in SLUICE_CELLS, migrate it (sluice migrate), then add it by its name, the first cell before the others. It gets a number that
never changes, so all other cells must answer. A drained cell takes pools again.`,
  args: '<cell>',
  options: { json: OPTION.json },
  examples: ['SLUICE_CELLS=a=postgres://…,b=postgres://… sluice cells add b'],
  run: ({ json }, [name]) =>
    onCells(async (cells) => {
      const joined = await addCell(cells, name, actor());
      console.log(
        json ? JSON.stringify(joined) : `Cell ${joined.name} is number ${joined.number} and takes pools.`,
      );
      return 0;
    }),
});

/** What a cell may have beside its pools, and what ends it. */
const LEFT: Readonly<Record<keyof CellLeft, readonly [what: string, todo: string]>> = {
  messages: ['claims on their way to the ledger', 'workers carry them'],
  dead_letters: ['dead letters of claims', 'replay or discard them (sluice dlq)'],
  deliveries: ['deliveries in the inbox', 'workers carry them'],
  inbox_dead_letters: [
    'dead letters of the inbox',
    'replay or discard them (sluice webhooks inbox list --dead)',
  ],
  operators: ['people with a key', 'the operators stand in this cell (docs/fleet.md says how they leave it)'],
};

const drain = action({
  about: `Move all pools out of a cell

The cell takes no new pools from now on. Each pool that is closed and at rest moves to the cell with the fewest pools. The command
names the other pools with the reason, and what else the cell has that would be lost with it. Run it again until the cell is empty.`,
  args: '<cell>',
  options: { reason: OPTION.reason, json: OPTION.json },
  examples: ["sluice cells drain b --reason 'new hardware'"],
  run: ({ reason, json }, [name]) =>
    onCells(async (cells) => {
      const results = await drainCell(cells, name, { actor: actor(), reason: reason ?? null }, (result) => {
        if (!json)
          console.log(
            result.to ? `${result.pool_id} → ${result.to}` : `${result.pool_id} stays: ${result.why}`,
          );
      });
      const staying = results.filter(({ to }) => to === undefined).length;
      const left = await leftIn(cells, name);
      const said = (Object.keys(LEFT) as (keyof CellLeft)[])
        .filter((key) => left[key] > 0)
        .map((key) => `  ${LEFT[key][0]}: ${left[key]}; ${LEFT[key][1]}`);
      const isEmpty = staying === 0 && said.length === 0;
      if (json) console.log(JSON.stringify({ items: results, left }));
      else if (isEmpty) console.log(`Cell ${name} is empty.`);
      else {
        if (staying > 0) console.log(`${staying} of ${results.length} pools stay in cell ${name}.`);
        if (said.length > 0) console.log(`Cell ${name} also has:\n${said.join('\n')}`);
      }
      return isEmpty ? 0 : 1;
    }),
});

export const command: Group = {
  about: 'Several intakes as one: list, add and drain the cells',
  environment: { ...CELL_VARIABLES, ...VARIABLES.operator },
  exits: ['when all is done, or every cell is well', 'when it is not'],
  actions: {
    list: listAction('List the cells, with what they hold', 'sluice cells list --json', list),
    add,
    drain,
  },
};
