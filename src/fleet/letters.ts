// The dead letters of all cells: an id is one letter in the whole fleet, because it begins with the number of its first cell.

import type { DeadLetter, DeadLetterAction, DeadLetterResult, DeadLetterStore } from '#core/dead_letters.ts';
import { DEAD_LETTER_DEFAULT_LIMIT, DEAD_LETTER_MAX_MSG_IDS } from '#core/dead_letters.ts';
import { cellAway } from './away.ts';
import type { Fleet, FleetCell } from './fleet.ts';
import { leaveOut } from './left_out.ts';

export function fleetLetters<Cell extends FleetCell>(
  fleet: Fleet<Cell>,
  storeOf: (cell: Cell) => DeadLetterStore,
): DeadLetterStore {
  if (fleet.isOne) return storeOf(fleet.only);
  const stores = new Map(fleet.cells.map((cell) => [cell.name, storeOf(cell)]));
  const store = ({ name }: Cell) => stores.get(name) as DeadLetterStore;
  const list = async (filter: Parameters<DeadLetterStore['list']>[0]) => {
    const { offset = 0, limit = DEAD_LETTER_DEFAULT_LIMIT } = filter;
    // A page by its number is counted over all cells.
    const all = { ...filter, offset: 0, limit: offset + limit };
    const { answers, away } = await fleet.all((cell) => store(cell).list(all));
    const letters = answers.flatMap(([{ name }, some]) =>
      some.map((letter): DeadLetter => ({ ...letter, cell: name })),
    );
    // A letter that is asked for by its id may be in the cell that does not answer.
    if (away.length > 0 && letters.length < (filter.msg_ids?.length ?? 0)) throw cellAway(away);
    leaveOut(away);
    letters.sort((a, b) => a.msg_id - b.msg_id);
    return letters.slice(offset, offset + limit);
  };
  /** Each letter in its cell; one that no cell has is told by the first cell. */
  const act = (what: 'replay' | 'discard') => async (action: DeadLetterAction) => {
    const msgIds = [...new Set(action.msgIds)];
    const letters = await list({ msg_ids: msgIds, limit: DEAD_LETTER_MAX_MSG_IDS });
    const cellOf = new Map(letters.map(({ msg_id, cell }) => [msg_id, cell]));
    const results: DeadLetterResult[] = [];
    for (const cell of fleet.cells) {
      const mine = msgIds.filter((id) => (cellOf.get(id) ?? fleet.only.name) === cell.name);
      if (mine.length > 0) results.push(...(await store(cell)[what]({ ...action, msgIds: mine })));
    }
    return results;
  };
  return { list, replay: act('replay'), discard: act('discard') };
}
