// `sluice pools move`: a pool that is not on sale, from its cell to another.

import { CELL_VARIABLES } from '../fleet/addresses.ts';
import { moveTo } from '../fleet/operate.ts';
import { onCells } from './cells.ts';
import { action, UsageError } from './grammar.ts';
import { actor, OPTION } from './operator.ts';
import { startProgress } from './progress.ts';

export const move = action({
  about: `Move a pool to another cell, whole

Close the pool first (sluice pools close). Each of its claims must be a ticket or a dead letter, or must have ended. Slots, claims, rules
and dead letters keep their ids. No cell sells or changes the pool while it moves. If a move is interrupted, run the same command
again: it goes on. The pool arrives closed; open it with sluice pools open.`,
  args: '<pool>',
  options: {
    to: { value: 'CELL', about: 'the cell to move it to' },
    reason: OPTION.reason,
    json: OPTION.json,
  },
  environment: CELL_VARIABLES,
  examples: ['sluice pools move opening_night --to b'],
  async run({ to, reason, json }, [pool]) {
    if (to === undefined) throw new UsageError('move needs --to');
    return onCells(async (cells) => {
      let progress: ReturnType<typeof startProgress> | undefined;
      let soFar = 0;
      const outcome = await moveTo(cells, pool, to, {
        actor: actor(),
        reason: reason ?? null,
        onParcels(there, all) {
          progress ??= startProgress(all, 'parcels');
          progress.advance(there - soFar);
          soFar = there;
        },
      }).finally(() => progress?.end());
      if (json) console.log(JSON.stringify({ pool_id: pool, cell: to, outcome }));
      else
        console.log(
          outcome === 'moved'
            ? `${pool} lives in cell ${to} now, closed.`
            : `${pool} lives in cell ${to} already.`,
        );
      return 0;
    });
  },
});
