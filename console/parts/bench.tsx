// A list to work on: select many, then act on them.

import { useState } from 'preact/hooks';
import type { Act } from '../lib/acts.ts';
import { count } from '../lib/format.ts';
import type { Pages } from '../lib/lists.ts';
import { ActDialog } from './act_dialog.tsx';
import { May } from './may.tsx';
import { Table, type TableProps } from './table.tsx';

/** What the server takes in one action. */
const MOST_AT_ONCE = 1_000;

interface BenchProps<Row> extends Omit<TableProps<Row>, 'selection'> {
  pages: Pages<Row>;
  acts: readonly Act[];
}

export function Bench<Row>({ pages, acts, ...table }: BenchProps<Row>) {
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [act, setAct] = useState<Act>();
  // A row that left the list is deselected too.
  const ids = table.rows
    .map(table.keyOf)
    .filter((key) => picked.has(key))
    .slice(0, MOST_AT_ONCE);
  const [acting, setActing] = useState<readonly string[]>([]);
  return (
    <>
      <div class={ids.length > 0 ? 'workbar workbar-active' : 'workbar'}>
        <span role="status">
          {ids.length > 0 ? `${count(ids.length)} selected` : 'Select some to act on them.'}
        </span>
        {ids.length > 0 && (
          <span class="workbar-acts">
            <Buttons
              acts={acts}
              onPress={(one) => {
                setActing(ids);
                setAct(one);
              }}
            />
          </span>
        )}
      </div>
      <Table {...table} selection={{ ids: picked, set: setPicked }} />
      {act && <ActDialog act={act} ids={acting} onClose={() => setAct(undefined)} onDone={pages.reload} />}
    </>
  );
}

function Buttons({ acts, onPress }: { acts: readonly Act[]; onPress(act: Act): void }) {
  return (
    <>
      {acts.map((act) => (
        <May key={act.verb} do={act.route}>
          <button
            type="button"
            class={`button ${act.isDanger ? 'button-danger' : 'button-main'}`}
            onClick={() => onPress(act)}
          >
            {act.verb}…
          </button>
        </May>
      ))}
    </>
  );
}

/** The same acts for one thing, on its own page. */
export function ActButtons({
  acts,
  id,
  onDone,
}: {
  acts: readonly Act[];
  id: string;
  onDone(isAll: boolean): void;
}) {
  const [act, setAct] = useState<Act>();
  return (
    <>
      <Buttons acts={acts} onPress={setAct} />
      {act && <ActDialog act={act} ids={[id]} onClose={() => setAct(undefined)} onDone={onDone} />}
    </>
  );
}
